"""Makes engine tables from rows in memory, without copying them."""

from collections.abc import Sequence

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.catalog import Table

from caraway_engine.rows.held import BATCH_ROWS, scanned
from caraway_engine.rows.null_structs import with_null_fields


def divide_batches(
    batches: Sequence[pa.RecordBatch], partitions: int
) -> list[list[pa.RecordBatch]]:
    """Divide batches into partitions of similar row counts, keeping neighbours together."""
    parts: list[list[pa.RecordBatch]] = [[] for _ in range(partitions)]
    total = sum(batch.num_rows for batch in batches)
    seen = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        parts[seen * partitions // total].append(batch)
        seen += batch.num_rows
    return parts


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return an empty batch."""
    return pa.RecordBatch.from_pylist([], schema=schema)


def table(partitions: Sequence[Sequence[pa.RecordBatch]], schema: pa.Schema) -> Table:
    """Make a table of rows to compute on. Appending more rows keeps its number of partitions."""
    return _table([list(scanned(map(with_null_fields, each))) for each in partitions], schema)


def listed(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> Table:
    """Make a table of rows that leave the engine as they are, in batches as large as these."""
    return _table([list(map(with_null_fields, batches))], schema)


def append(to: Table, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
    """Append rows to the partitions of a table in turn, without copying them."""
    if not batches:
        return
    # The engine must not cut batches again: those that end a chunk have fewer rows.
    config = SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS)
    context = SessionContext(config)
    context.catalog().schema().register_table("version", to)
    context.catalog().schema().register_table("chunks", table([batches], schema))
    context.sql("INSERT INTO version SELECT * FROM chunks").collect()


def _table(partitions: Sequence[list[pa.RecordBatch]], schema: pa.Schema) -> Table:
    empty = no_rows(schema)
    context = SessionContext()
    context.register_record_batches("rows", [each or [empty] for each in partitions])
    return context.catalog().schema().table("rows")
