"""Work of tasks that is not a fragment: statements for databases, and batch calls."""

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from caraway_core.errors import ExecutionError
from caraway_core.protocols.fleet import Task, TaskTable
from caraway_core.work import BatchCall, SourceQuery
from caraway_engine.execution.streams import OwnStream
from caraway_engine.rows import plain


def started(task: Task, inputs: Sequence[TaskTable]) -> OwnStream | None:
    """Begin the work of a task, if the engine has no part in it; never blocks.

    Raises:
        ExecutionError: the columns are not those that the task says.
    """
    match task.work:
        case SourceQuery() as query:
            # Here: pyarrow's datasets are slow to import, and few tasks need them.
            from caraway_engine.remote import streams

            plain.check_same(query.schema, task.schema)
            return streams.answered(query, task.schema)
        case BatchCall() as call:
            from caraway_engine.remote import calls

            return calls.CallStream(partial(_rows, call, inputs, task.schema))
    return None


def _rows(
    call: BatchCall, inputs: Sequence[TaskTable], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Call the function on the rows of all inputs, one input after another."""
    name = type(call).__name__
    for batch in call.build()(_batches(inputs)):
        if not isinstance(batch, pa.RecordBatch):
            raise ExecutionError(f"batch call {name} gave something else than record batches")
        if batch.schema.types != schema.types:
            raise ExecutionError(
                f"batch call {name} gave columns of the types "
                f"({', '.join(map(str, batch.schema.types))}) where the plan says "
                f"({', '.join(map(str, schema.types))})"
            )
        yield plain.restored(batch, schema)


def _batches(inputs: Sequence[TaskTable]) -> Iterator[pa.RecordBatch]:
    for each in inputs:
        for table in each.tables:
            yield from table.to_batches()
