"""Converts the rows that a statement changes into changes of a dataset's log."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pyarrow as pa

from caraway_acceleration.changes import keys
from caraway_acceleration.changes.ingesting import BaseWithLog
from caraway_core import changes
from caraway_core.changes import EXISTS, OFFSET, OLD_KEY, OP, Changes, Op
from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import BatchStream, StreamTraits
from caraway_core.statements import DELETE, INSERT, TableWrite
from caraway_core.tables import Twice

MOST_BYTES = 256 * 1024 * 1024
"""The maximum size of the rows that one statement changes, which the scheduler holds in memory."""
COUNT = pa.schema([pa.field("count", pa.uint64(), False)])


@dataclass(frozen=True, slots=True)
class Changeable:
    """A dataset that statements may change: its columns, its keys and its current state."""

    name: TableName
    schema: pa.Schema
    primary: tuple[str, ...]
    twice: Twice
    upon: BaseWithLog


async def collected(stream: BatchStream) -> pa.Table:
    """Read all rows of a stream.

    Raises:
        InvalidQueryError: they are too many for one statement.
    """
    batches: list[pa.RecordBatch] = []
    size_bytes = 0
    try:
        async for batch in stream:
            batches.append(batch)
            size_bytes += batch.nbytes
            if size_bytes > MOST_BYTES:
                raise InvalidQueryError(
                    f"the statement changes more than {MOST_BYTES >> 20} MiB of rows at once; "
                    "change fewer at a time"
                )
    finally:
        await stream.aclose()
    return pa.Table.from_batches(batches, schema=stream.schema)


def changes_of(write: TableWrite, rows: pa.Table, dataset: Changeable) -> Changes:
    """Return the log changes of a statement, from the rows that it changes.

    Raises:
        InvalidQueryError: a required value is NULL, or a key would be duplicated.
    """
    if write.name == DELETE:
        return _logged(rows, dataset, Op.DELETE)
    new = rows.select(dataset.schema.names)
    _check_values(new, dataset)
    if write.name == INSERT:
        return _inserted(new, rows, dataset)
    if EXISTS not in rows.column_names:
        return _logged(new, dataset, Op.UPSERT)
    old = rows.select([f"{OLD_KEY}{number}" for number in range(len(dataset.primary))])
    keys.check(dataset.name, new.select(list(dataset.primary)), rows.column(EXISTS), old)
    gone = _logged(old.rename_columns(list(dataset.primary)), dataset, Op.DELETE)
    made = changes.joined([gone, _logged(new, dataset, Op.UPSERT)])
    return Changes(made.rows, rows.num_rows)


def op_of(dataset: Changeable) -> Op | None:
    """Return the operation that inserts a row; None if keys must be compared first."""
    if not dataset.primary:
        return Op.INSERT
    if dataset.twice == "refuse":
        return None
    return Op.KEEP if dataset.twice == "first" else Op.UPSERT


def fits(made: Changes | None, dataset: Changeable) -> bool:
    """Return whether changes insert rows as the dataset, which may be another now, needs it."""
    if made is None or not made.rows.num_rows:
        return False
    if not made.rows.schema.equals(changes.log_schema(dataset.schema)):
        return False
    return bool(made.rows.column(OP)[-1].as_py() == op_of(dataset))


def given(rows: pa.Table, dataset: Changeable, *, replaces: bool = False) -> Changes | None:
    """Return the log changes of inserting rows as they are; None if keys must be looked up first.

    The rows have columns of the dataset, in its types; columns that are left out are NULL. If they
    replace the present rows, the changes begin with the deletion of these.

    Raises:
        InvalidQueryError: a required value is NULL, or a key would be duplicated.
    """
    if op_of(dataset) is None and not replaces:
        return None
    whole = pa.table(
        [
            rows.column(field.name)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in dataset.schema
        ],
        names=dataset.schema.names,
    )
    _check_values(whole, dataset)
    if not replaces:
        return _inserted(whole, whole, dataset)
    exists = pa.chunked_array([pa.repeat(False, rows.num_rows)])
    new = _inserted(whole, whole.append_column(EXISTS, exists), dataset)
    emptied = pa.Table.from_pylist([{OP: Op.TRUNCATE}], schema=new.rows.schema)
    return Changes(pa.concat_tables([emptied, new.rows]), rows.num_rows)


def _inserted(new: pa.Table, rows: pa.Table, dataset: Changeable) -> Changes:
    op = op_of(dataset)
    if op is None:
        keys.check(dataset.name, new.select(list(dataset.primary)), rows.column(EXISTS), None)
    return _logged(new, dataset, Op.UPSERT if op is None else op)


def _check_values(new: pa.Table, dataset: Changeable) -> None:
    for field in dataset.schema:
        may_be_null = field.nullable and field.name not in dataset.primary
        if not may_be_null and new.column(field.name).null_count:
            raise InvalidQueryError(
                f"dataset '{dataset.name}': column '{field.name}' may not be NULL; nothing is "
                "changed"
            )


def _logged(rows: pa.Table, dataset: Changeable, op: Op) -> Changes:
    """Convert rows to the columns of the log; missing columns become NULL."""
    schema, count = changes.log_schema(dataset.schema), rows.num_rows
    columns = []
    for field in schema:
        if field.name == OP:
            columns.append(pa.chunked_array([pa.repeat(pa.scalar(op, field.type), count)]))
        elif field.name in rows.column_names and field.name != OFFSET:
            columns.append(rows.column(field.name).cast(field.type))
        else:
            columns.append(pa.chunked_array([pa.nulls(count, field.type)]))
    return Changes(pa.Table.from_arrays(columns, schema=schema), count)


class CountStream:
    """The answer to a statement that changed rows: their count."""

    reads_only_catalog = False
    schema = COUNT

    def __init__(self, count: int, written: TableName) -> None:
        self.written: TableName | None = written
        self._count: int | None = count
        self.traits = StreamTraits()

    @property
    def is_at_end(self) -> bool:
        """True if the count was read."""
        return self._count is None

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        count, self._count = self._count, None
        if count is None:
            raise StopAsyncIteration
        return pa.RecordBatch.from_pydict({"count": [count]}, schema=COUNT)

    async def aclose(self) -> None:
        """Drop the remaining rows."""
        self._count = None
