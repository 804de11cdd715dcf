"""Estimates the rows of the joins of a plan, by the tables that they read."""

import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from caraway_core.ids import TableName
from caraway_engine.errors import engine_errors
from caraway_engine.join_orders.estimates import Estimator, NoFactsError
from caraway_engine.join_orders.facts import FactsOf
from caraway_engine.statements import plan_facts, plan_nodes

logger = logging.getLogger(__name__)
JoinedRows = Mapping[frozenset[TableName], float]
"""The rows of joins by their tables. A join that reads a table twice is in none."""


def joined_rows(optimized: Any, facts_of: FactsOf) -> JoinedRows:
    """Return the estimated rows of the joins of a plan of which all tables are known."""
    found: dict[frozenset[TableName], float] = {}
    try:
        _visit(getattr(optimized, "_raw_plan", optimized), Estimator(facts_of), found)
    except Exception as exc:  # noqa: BLE001 -- the engine raises plain exceptions
        _log(engine_errors.kind_of(exc))
    return found


@lru_cache(maxsize=64)
def _log(kind: str) -> None:
    """Log why no rows are estimated, with the ids of the statement: once for each kind."""
    logger.info("rows of joins are not estimated", extra={"kind": kind})


def _visit(
    raw: Any, estimator: Estimator, found: dict[frozenset[TableName], float]
) -> list[TableName]:
    """Add the joins of a plan, and return the tables that it reads."""
    node = plan_nodes.typed(raw)
    if node.kind == "TableScan":
        return [plan_facts.table_name(*node.variant.fqn())]
    tables = [table for each in raw.inputs() for table in _visit(each, estimator, found)]
    read = frozenset(tables)
    if node.kind == "Join" and len(read) == len(tables):
        try:
            found[read] = estimator.estimate(raw).rows
        except NoFactsError:
            pass
    return tables
