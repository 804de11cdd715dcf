"""Facts of tables of files, by which joins are ordered."""

import logging

from datafusion.catalog import Table

from caraway_core.tables import TableSpec
from caraway_engine.join_orders import RowFacts, described

logger = logging.getLogger(__name__)


def facts(spec: TableSpec, table: Table) -> RowFacts | None:
    """Return what Parquet files on this machine say of their rows; None for other tables.

    Object stores are not asked: a question to them takes longer than many statements.
    """
    if not spec.scans or any(each.store or each.format != "parquet" for each in spec.scans):
        return None
    try:
        return described.facts(table, spec.schema, may_read=True)
    except Exception:
        logger.debug("no facts of files", exc_info=True)
        return None
