"""Reads tables in memory: a table of the engine takes their rows as they are."""

from collections.abc import Sequence

import pyarrow as pa
from datafusion import SessionContext
from datafusion.catalog import Table

from caraway_core.tables import MemoryTable, TableSplit
from caraway_engine.rows.held import SCANNED_ROWS
from caraway_engine.rows.null_structs import with_null_fields


def read(spec: MemoryTable, _splits: Sequence[TableSplit] = ()) -> Table:
    """Make a table of rows."""
    context = SessionContext()
    rows = spec.rows.cast(spec.schema).to_batches(max_chunksize=SCANNED_ROWS)
    batches = [with_null_fields(each) for each in rows]
    empty = pa.RecordBatch.from_pylist([], schema=spec.schema)
    context.register_record_batches("memory", [batches or [empty]])
    return context.catalog().schema().table("memory")
