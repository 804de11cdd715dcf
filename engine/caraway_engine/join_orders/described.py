"""Facts of tables of files, as the engine's own statistics have them.

The engine has read them from the footers of the files, and shows them only as text.
"""

import logging
import re
from typing import Any

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.catalog import Table

from caraway_core.tables import TableSpec
from caraway_engine.join_orders import sampled
from caraway_engine.join_orders.facts import ColumnFacts, RowFacts

_ROWS = re.compile(r"statistics=\[Rows=(?:Exact|Inexact)\((\d+)\)")
_NUMBER = r"(?:Exact|Inexact)\((?:U?Int\d+|Decimal128)\((-?[\d.]+)[,)\d]*\)"
_DAY = r'(?:Exact|Inexact)\(Date32\("(-?\d+)-(\d\d)-(\d\d)"\)\)'
_NUMBERS = re.compile(rf"\(Col\[(\d+)\]: Min={_NUMBER} Max={_NUMBER}")
_DAYS = re.compile(rf"\(Col\[(\d+)\]: Min={_DAY} Max={_DAY}")
_NAME = "measured"
_ROWS_READ, _MOST_COLUMNS = 8192, 100
logger = logging.getLogger(__name__)


def facts(table: Any, schema: pa.Schema, *, may_read: bool = False) -> RowFacts | None:
    """Return what the engine knows of a table, or None if it does not know its size.

    If it `may_read`, the first rows show how many different values there are.
    """
    context = SessionContext(
        SessionConfig()
        .with_target_partitions(1)
        .set("datafusion.execution.collect_statistics", "true")
        .set("datafusion.explain.show_statistics", "true")
        .set("datafusion.explain.physical_plan_only", "true")
    )
    context.catalog().schema().register_table(_NAME, table)
    text = context.sql(f"EXPLAIN SELECT * FROM {_NAME}").to_pydict()["plan"][0]
    root = text.partition("\n")[0]
    rows = _ROWS.search(root)
    if rows is None:
        return None
    count = float(rows[1])
    ranges = {
        int(place): (float(least), float(greatest))
        for place, least, greatest in _NUMBERS.findall(root)
    }
    for place, *days in _DAYS.findall(root):
        ranges[int(place)] = _days(days[:3]), _days(days[3:])
    known = {
        field.name: _column(field.type, count, *ranges[place])
        for place, field in enumerate(schema)
        if place in ranges
    }
    if not may_read or len(schema) > _MOST_COLUMNS:
        return RowFacts(count, known)
    rows = context.sql(f"SELECT * FROM {_NAME} LIMIT {_ROWS_READ}").collect()
    return RowFacts(count, sampled.first(schema, rows, count, known))


def _column(kind: pa.DataType, rows: float, least: float, greatest: float) -> ColumnFacts:
    step = 10.0**-kind.scale if pa.types.is_decimal(kind) else 1.0
    return ColumnFacts(max(1.0, min(rows, (greatest - least) / step + 1)), least, greatest)


def _days(parts: list[str]) -> float:
    """Return a day since 1970; a day more or less does not matter."""
    year, month, day = map(int, parts)
    return (year - 1970) * 365.2425 + (month - 1) * 30.437 + day - 1


def file_facts(spec: TableSpec, table: Table) -> RowFacts | None:
    """Return what Parquet files on this machine say of their rows; None for other tables.

    Object stores are not asked: a question to them takes longer than many statements.
    """
    if not spec.scans or any(each.store or each.format != "parquet" for each in spec.scans):
        return None
    try:
        return facts(table, spec.schema, may_read=True)
    except Exception:
        logger.debug("no facts of files", exc_info=True)
        return None
