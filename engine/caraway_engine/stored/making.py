"""Makes engine tables from rows in memory, without copying them."""

from collections.abc import Sequence

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.catalog import Table

from caraway_engine.rows.held import BATCH_ROWS
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
    """Make a table of rows. Appending more rows keeps its number of partitions."""
    empty = no_rows(schema)
    context = SessionContext()
    rows = [list(map(with_null_fields, each)) or [empty] for each in partitions]
    context.register_record_batches("rows", rows)
    return context.catalog().schema().table("rows")


def append(to: Table, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
    """Append rows to the partitions of a table in turn, without copying them."""
    if not batches:
        return
    # By default the engine would make smaller batches, which slow scans by a tenth.
    config = SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS)
    context = SessionContext(config)
    context.catalog().schema().register_table("version", to)
    context.catalog().schema().register_table("chunks", table([batches], schema))
    context.sql("INSERT INTO version SELECT * FROM chunks").collect()
