"""Remote tables that the engine scans; what it pushes into a scan becomes SQL."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from datafusion.catalog import Table

from caraway_core.errors import QueryError
from caraway_core.tables import RemoteColumn, RemoteSplit, RemoteTable
from caraway_core.work import SourceQuery
from caraway_engine.errors import failing
from caraway_engine.remote import answers, filters, opened, words
from caraway_engine.remote.filters import FilterCall
from caraway_engine.remote.locally import LocalCondition
from caraway_engine.remote.opened import OpenedReads
from caraway_engine.remote.words import NotPushableError, SqlWriter


def build(table: RemoteTable, splits: Sequence[RemoteSplit] = ()) -> Table:
    """Return an engine table of all rows, or of some splits."""
    return Table(RemoteDataset(table, splits))


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


class RemoteDataset(ds.InMemoryDataset):  # type: ignore[misc] # pyarrow is untyped to us
    """A pyarrow dataset without rows of its own; its fragments are statements."""

    def __init__(self, table: RemoteTable, splits: Sequence[RemoteSplit] = ()) -> None:
        super().__init__(table.schema.empty_table())
        self._table = table
        self._splits = splits

    def scanner(
        self, columns: Sequence[str] | None = None, filter: Any = None, **_options: object
    ) -> "_Scan":
        """Return a scan that the engine does not run: it takes the columns of a planned one."""
        fragment = _Fragment(self._table, self._splits, OpenedReads())
        scan = fragment.scanner(columns=columns, filter=filter)
        opened.current().plan(scan.answer)
        return scan

    def get_fragments(self, filter: Any = None) -> Iterator["_Fragment"]:
        """Return the only fragment. The engine passes the filter again with the scan."""
        return iter([_Fragment(self._table, self._splits, opened.current())])


@dataclass(frozen=True, slots=True)
class _Fragment:
    table: RemoteTable
    splits: Sequence[RemoteSplit]
    opened: OpenedReads

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        **_options: object,
    ) -> "_Scan":
        """Return a scan of the rows that pass the filter, with the requested columns."""
        names = tuple(self.table.schema.names if columns is None else columns)
        known = {each.name: each for each in self.table.columns}
        condition = LocalCondition.of(filter)
        tests, left = _divided(condition.calls, known, words.of_reader(self.table.reader))
        if self.splits:
            parts = [in_split(self.table, each) for each in self.splits]
            tests.append(f"({' OR '.join(parts)})")
        condition = replace(condition, calls=left)
        answer = _answer(self.table, names, condition, tests)
        return _Scan(answer, names, condition, self.opened)


@dataclass(frozen=True, slots=True)
class _Scan:
    answer: SourceQuery
    columns: tuple[str, ...]
    condition: LocalCondition
    opened: OpenedReads

    @property
    def projected_schema(self) -> pa.Schema:
        """The schema of the requested columns."""
        return pa.schema([self.answer.table.schema.field(name) for name in self.columns])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. Errors are raised as marks, because the engine keeps only their text."""
        rows = answers.read(self.answer)
        if not self.opened.add(rows):
            return
        try:
            for batch in rows:
                for part in self.condition.parts(batch):
                    yield part.select(list(self.columns))
        except QueryError as exc:
            raise failing.marked(exc) from exc
        finally:
            rows.close()


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


def _answer(
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
