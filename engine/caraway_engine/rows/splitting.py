"""Hash-partitions rows exactly as the engine does when it repartitions.

The engine does not expose its hash. But a hash join has to partition both sides. That part of a
plan can run without the join. The hash depends only on the keys. So rows with equal keys meet in
one partition, whichever process partitioned them.
"""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import pyarrow as pa
from datafusion import ExecutionPlan, SessionConfig, SessionContext

from caraway_core.errors import ExecutionError
from caraway_core.protocols.fleet import Split
from caraway_engine.rows import plain

_KEPT = 16
_CHUNK_BYTES = 4 * 1024 * 1024
_MOST_BYTES = 1024**3
"""A text column ends at 2 GiB."""
_BATCH_ROWS = 64 * 1024
_LEAST_ROWS = 8 * 1024
_ROOM_BYTES = 32 * 1024 * 1024
"""The engine allocates a batch for each partition, with 8 bytes and more for each value."""
_contexts: OrderedDict[tuple[int, int], SessionContext] = OrderedDict()
_lock = Lock()


async def split(table: pa.Table, by: Split) -> tuple[pa.Table, ...]:
    """Partition a table into `by.count` tables, without columns that were only there to be hashed.

    Raises:
        ExecutionError: the engine cannot hash the keys.
    """
    schema = pa.schema(list(table.schema)[: len(table.schema) - by.extra])
    if by.count == 1:
        return (table.select(list(range(len(schema)))),)
    context = _context(by.count, _batch_rows(by.count, table.num_columns))
    plan = await asyncio.to_thread(_plan, context, table, by)
    running = (_collect(context, plan, number, schema) for number in range(by.count))
    # Read all partitions at once: they share one input, which stops while one is not read.
    return tuple(await asyncio.gather(*running))


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate the tables of one partition, and merge small chunks."""
    table = pa.concat_tables(tables)
    chunks = table.column(0).num_chunks if table.num_columns else 1
    are_small = table.nbytes < min(chunks * _CHUNK_BYTES, _MOST_BYTES)
    return table.combine_chunks() if are_small else table


async def _collect(
    context: SessionContext, plan: ExecutionPlan, number: int, schema: pa.Schema
) -> pa.Table:
    batches = []
    async for batch in context.execute(plan, number):
        columns = batch.to_pyarrow().columns[: len(schema)]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return await asyncio.to_thread(plain.plain_table, batches, schema)


def _plan(context: SessionContext, table: pa.Table, by: Split) -> ExecutionPlan:
    """Plan a join with an empty table, and return the part of the plan that partitions the rows."""
    name, empty = f"rows_{uuid.uuid4().hex}", f"none_{uuid.uuid4().hex}"
    rows = table.rename_columns([f"c{index}" for index in range(table.num_columns)])
    keys = pa.schema([pa.field(f"k{key}", table.schema.field(key).type) for key in by.keys])
    none = pa.RecordBatch.from_pylist([], schema=keys)
    equal = " AND ".join(f"{name}.c{key} = {empty}.k{key}" for key in by.keys)
    context.register_record_batches(name, _halves(rows))
    context.register_record_batches(empty, [[none]])
    try:
        sql = f"SELECT {name}.* FROM {name} JOIN {empty} ON {equal}"
        return _repartitioning(context.sql(sql).execution_plan(), by)
    finally:
        context.deregister_table(name)
        context.deregister_table(empty)


def _halves(rows: pa.Table) -> list[list[pa.RecordBatch]]:
    """Make two partitions: the optimizer does not repartition few rows in a single one."""
    batches = rows.to_batches(max_chunksize=_BATCH_ROWS)
    empty = pa.RecordBatch.from_pylist([], schema=rows.schema)
    return [[*batches[::2], empty], [*batches[1::2], empty]]


def _repartitioning(plan: ExecutionPlan, by: Split) -> ExecutionPlan:
    keys = ", ".join(f"c{key}@{key}" for key in by.keys)
    start = f"RepartitionExec: partitioning=Hash([{keys}], {by.count})"
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if node.display().startswith(start):
            return node
        waiting += node.children()
    raise ExecutionError(
        "the engine does not partition rows by these columns; this is a bug in the planner, not in "
        "the statement: please report it"
    )


def _batch_rows(partitions: int, columns: int) -> int:
    """Return how many rows the engine joins to a batch: fewer copies, unless they are wide."""
    rows = _BATCH_ROWS
    while rows > _LEAST_ROWS and rows * partitions * columns * 8 > _ROOM_BYTES:
        rows //= 2
    return rows


def _context(partitions: int, batch_rows: int) -> SessionContext:
    key = partitions, batch_rows
    with _lock:
        context = _contexts.pop(key, None) or _made(partitions, batch_rows)
        _contexts[key] = context
        if len(_contexts) > _KEPT:
            _contexts.popitem(last=False)
        return context


def _made(partitions: int, batch_rows: int) -> SessionContext:
    options = {
        "datafusion.optimizer.hash_join_single_partition_threshold": "0",
        "datafusion.optimizer.hash_join_single_partition_threshold_rows": "0",
        "datafusion.optimizer.enable_dynamic_filter_pushdown": "false",
        "datafusion.execution.batch_size": str(batch_rows),
    }
    config = SessionConfig().with_target_partitions(partitions)
    for name, value in options.items():
        config = config.set(name, value)
    return SessionContext(config)
