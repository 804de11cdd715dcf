"""Facts of tables of files: as their source says, and as their first rows show."""

import logging

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.catalog import Table

from caraway_core.tables import TableSpec
from caraway_core.tables.ranges import ColumnRange
from caraway_engine.join_orders import sampled
from caraway_engine.join_orders.facts import ColumnFacts, RowFacts

_NAME = "measured"
_ROWS_READ, _MOST_COLUMNS = 8192, 100
logger = logging.getLogger(__name__)


def file_facts(spec: TableSpec, table: Table) -> RowFacts | None:
    """Return what is known of the rows of Parquet files, or None.

    The first rows of files on this machine show how many different values there are. Object stores
    are not asked: a question to them takes longer than many statements.
    """
    is_parquet = bool(spec.scans) and all(each.format == "parquet" for each in spec.scans)
    if not is_parquet or spec.row_count is None:
        return None
    rows = float(spec.row_count)
    types = dict(zip(spec.schema.names, spec.schema.types, strict=True))
    known = {
        name: _column(types[name], rows, each)
        for name, each in spec.ranges
        if name in types and _is_counted(types[name])
    }
    if any(each.store for each in spec.scans):
        return RowFacts(rows, known) if known else None
    if len(types) > _MOST_COLUMNS:
        return RowFacts(rows, known)
    try:
        return RowFacts(rows, sampled.first(spec.schema, _first_rows(table), rows, known))
    except Exception:
        logger.debug("no facts of files", exc_info=True)
        return None


def _first_rows(table: Table) -> list[pa.RecordBatch]:
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.catalog().schema().register_table(_NAME, table)
    batches: list[pa.RecordBatch] = context.table(_NAME).limit(_ROWS_READ).collect()
    return batches


def _is_counted(kind: pa.DataType) -> bool:
    """Return whether a range of values shows how many there may be."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_decimal128(kind) or types.is_date(kind))


def _column(kind: pa.DataType, rows: float, known: ColumnRange) -> ColumnFacts:
    least, greatest = known
    step = 10.0**-kind.scale if pa.types.is_decimal(kind) else 1.0
    return ColumnFacts(max(1.0, min(rows, (greatest - least) / step + 1)), least, greatest)
