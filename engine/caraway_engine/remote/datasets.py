"""Remote tables that the engine scans; what it pushes into a scan becomes SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from datafusion.catalog import Table

from caraway_core.protocols.remote import RemoteRows
from caraway_core.tables import RemoteColumn, RemoteSplit, RemoteTable
from caraway_core.work import SourceQuery
from caraway_engine.remote import answers, filters, words
from caraway_engine.remote.filters import FilterCall
from caraway_engine.remote.kinds import NotPushableError
from caraway_engine.remote.locally import LocalCondition
from caraway_engine.remote.opened import OpenedReads
from caraway_engine.remote.scanning import RowDataset
from caraway_engine.remote.words import SqlWriter


def build(table: RemoteTable, splits: Sequence[RemoteSplit] = ()) -> Table:
    """Return an engine table of all rows, or of some splits."""
    return Table(RowDataset(_Source(table, splits)))


def relation(table: RemoteTable) -> str:
    """Return the qualified and quoted name of the table in its database."""
    return ".".join(map(words.of_reader(table.reader).quoted, table.relation))


def in_split(table: RemoteTable, split: RemoteSplit) -> str:
    """Return the SQL condition of a split. The first split includes rows without a key."""
    key = words.of_reader(table.reader).quoted(split.column)
    tests = []
    if split.low is not None:
        tests.append(f"{key} >= {split.low}")
    if split.high is not None:
        tests.append(f"{key} < {split.high}")
    condition = " AND ".join(tests) or "TRUE"
    return f"({condition})" if split.low is not None else f"({condition} OR {key} IS NULL)"


@dataclass(frozen=True, slots=True)
class _Source:
    table: RemoteTable
    splits: Sequence[RemoteSplit]

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def plan(self, columns: Sequence[str], condition: LocalCondition) -> "_Answer":
        """Write the statement for the columns of the rows that meet a condition."""
        known = {each.name: each for each in self.table.columns}
        tests, left = _divided(condition.calls, known, words.of_reader(self.table.reader))
        if self.splits:
            parts = [in_split(self.table, each) for each in self.splits]
            tests.append(f"({' OR '.join(parts)})")
        condition = replace(condition, calls=left)
        return _Answer(_query(self.table, columns, condition, tests), condition)


@dataclass(frozen=True, slots=True)
class _Answer:
    query: SourceQuery
    left: LocalCondition

    def begin_rows(self, reads: OpenedReads) -> RemoteRows:
        return answers.read(self.query)


def _divided(
    calls: Sequence[FilterCall], known: Mapping[str, RemoteColumn], writer: SqlWriter
) -> tuple[list[str], list[FilterCall]]:
    """Split conditions into those that the database applies, and those left for the engine."""
    tests, left = [], []
    for call in calls:
        try:
            test = filters.sql(call, known, writer)
        except NotPushableError:
            left.append(call)
            continue
        if test.kind == "bool":
            tests.append(test.sql)
        if test.kind != "bool" or not test.is_exact:
            left.append(call)
    return tests, left


def _query(
    table: RemoteTable, names: Sequence[str], condition: LocalCondition, tests: Sequence[str]
) -> SourceQuery:
    """Select the requested columns, and those that the remaining conditions need."""
    wanted = {*names, *(table.schema.names if condition.columns is None else condition.columns)}
    # Without any column, rows still have to be counted.
    columns = [each for each in table.columns if each.name in wanted] or [*table.columns[:1]]
    writer = words.of_reader(table.reader)
    terms = [writer.sent(writer.column(each), each.type) for each in columns]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    sql = f"SELECT {', '.join(terms)} FROM {relation(table)}{where}"
    return SourceQuery(table, sql, pa.schema([table.schema.field(each.name) for each in columns]))
