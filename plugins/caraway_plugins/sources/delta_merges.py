"""MERGE into Delta Lake tables, which `deltalake` runs over the newest version."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable

from caraway_core.protocols.remote import (
    ADDED,
    ROW_ALIAS,
    TABLE_ALIAS,
    TAKEN,
    MergeStep,
    TableMerge,
)
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.delta_commits import (
    DeltaWrite,
    RowsForLibrary,
    has_empty,
    quoted,
    text_keys,
)

_COUNTS = ("inserted", "updated", "deleted")


class DeltaMerge(DeltaWrite):
    """A MERGE of rows; see `RemoteMerger.merge`."""

    verb = "MERGE into"
    done = "changed"
    most_retries = 0  # A version of others may have rows that the merge has not seen.

    def __init__(self, table: RemoteTable, columns: pa.Schema, merge: TableMerge) -> None:
        """Take the table, the columns of the rows, and what becomes of them."""
        super().__init__(table)
        self._columns = columns
        self._merge = merge

    def insert_rows(self, rows: Iterator[pa.RecordBatch]) -> int:
        """See `RemoteInsert.insert_rows`."""
        table = self._opened()
        self._check_same(table)
        if self._merge.taken or self._merge.left:
            self._check_changeable(table)
        filled = self._filled_keys(text_keys(table))
        given = RowsForLibrary(rows, lambda batch: self._checked(batch, filled))
        source = pa.RecordBatchReader.from_batches(self._columns, iter(given))

        metrics = self._committed(
            table, lambda properties: self._run(table, source, properties), given
        )
        return sum(int(metrics[f"num_target_rows_{each}"]) for each in _COUNTS)

    def _run(
        self, table: DeltaTable, source: pa.RecordBatchReader, properties: CommitProperties
    ) -> Mapping[str, Any]:
        merger = table.merge(
            source,
            self._same,
            source_alias=ROW_ALIAS,
            target_alias=TABLE_ALIAS,
            commit_properties=properties,
        )
        if not self._merge.taken:
            # Without a clause for them, a row that several rows are the same as is kept repeatedly.
            merger = merger.when_matched_delete(f"{_row(TAKEN)} = 0")
        for step in self._merge.taken:
            # Without a condition, the library lets several rows delete one.
            test = step.condition if self._merge.is_paired else _is_of(TAKEN, step)
            test = test or f"{_row(TAKEN)} IS NULL"
            values = _values_of(step)
            merger = (
                merger.when_matched_update(values, test)
                if values
                else merger.when_matched_delete(test)
            )
        for step in self._merge.added:
            merger = merger.when_not_matched_insert(_values_of(step), _is_of(ADDED, step))
        for step in self._merge.left:
            values, condition = _values_of(step), step.condition or None
            merger = (
                merger.when_not_matched_by_source_update(values, condition)
                if values
                else merger.when_not_matched_by_source_delete(condition)
            )
        metrics: Mapping[str, object] = merger.execute()
        return metrics

    @property
    def _same(self) -> str:
        """The condition that two rows are the same."""
        tests = [
            f"{each.same.format(f'{TABLE_ALIAS}.{quoted(each.column)}')} = "
            f"{each.same.format(_row(each.row_column))}"
            for each in self._merge.keys
        ]
        return " AND ".join([*tests, *filter(None, [self._merge.match])])

    def _filled_keys(self, keys: frozenset[str]) -> Mapping[str, str]:
        """Return the columns of the rows that are put into columns that divide the table.

        Raises:
            InvalidQueryError: the library computes such a column, so it may be an empty text.
        """
        steps = (*self._merge.taken, *self._merge.added, *self._merge.left)
        for step in steps:
            if computed := sorted(keys & dict(step.computed).keys()):
                raise self._refused(
                    f"the table is divided by column '{computed[0]}', which is set to values of "
                    "the source alone"
                )
        return {name: column for step in steps for column, name in step.sets if column in keys}

    def _checked(self, batch: pa.RecordBatch, filled: Mapping[str, str]) -> pa.RecordBatch:
        self._check_running()
        for name, column in filled.items():
            if has_empty(batch.column(name)):
                raise self._refused_empty(column)
        return batch


def _values_of(step: MergeStep) -> dict[str, str]:
    """Return the columns that a step sets, with SQL over a pair of rows."""
    rows = {quoted(column): _row(name) for column, name in step.sets}
    return {**rows, **{quoted(column): sql for column, sql in step.computed}}


def _row(column: str) -> str:
    return f"{ROW_ALIAS}.{quoted(column)}"


def _is_of(kind: str, step: MergeStep) -> str:
    return f"{_row(kind)} = {step.number}"
