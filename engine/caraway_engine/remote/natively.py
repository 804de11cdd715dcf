"""Starts plans whose remote tables are scanned by the engine."""

from collections.abc import Callable, Iterator
from typing import Any

from datafusion import SessionContext

from caraway_engine.errors import engine_messages as messages
from caraway_engine.remote import opened
from caraway_engine.statements import plan_facts


def start(dataframe: object, scratch: Callable[[], SessionContext]) -> Any:
    """Start a plan; its only scan, if it has one, gets the limit of the plan."""
    opened.current().limit = _limit(dataframe)
    return run(dataframe, scratch)


def run(dataframe: Any, scratch: Callable[[], SessionContext]) -> object:
    """Start a plan; the engine pushes filters into the scans of its tables.

    DataFusion 55 also pushes constants, and fails when it combines one with a pyarrow filter. Such
    a plan is started without filter pushdown, in a context from `scratch`.
    """
    try:
        return dataframe.execute_stream()
    except Exception as exc:
        if not messages.CONSTANT_FILTER.find(exc):
            raise
    opened.current().limit = None  # Here filters stay above the scan.
    context = scratch()
    context.remove_optimizer_rule("push_down_filter")
    logical = dataframe.logical_plan()
    return context.create_dataframe_from_logical_plan(logical).execute_stream()


def _limit(dataframe: Any) -> int | None:
    """Return how many rows the only scan of a plan has to return, if the plan limits them."""
    if not any(name == "Limit" for name, _ in _nodes(dataframe.logical_plan())):
        return None
    facts = plan_facts.of(dataframe.logical_plan())
    if facts.has_subquery or not facts.is_complete or sum(facts.scans.values()) != 1:
        return None
    nodes = dict(_nodes(dataframe.optimized_logical_plan()))
    if not _PLAIN.issuperset(nodes):
        return None
    fetch = nodes["TableScan"].fetch()
    return None if fetch is None else int(fetch)


def _nodes(plan: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a plan with their kinds; a part of a kind that is not known has none."""
    try:
        variant = plan.to_variant()
    except Exception:  # noqa: BLE001 -- DataFusion knows kinds that its Python package does not
        variant = None
    yield type(variant).__name__, variant
    for each in plan.inputs():
        yield from _nodes(each)


_PLAIN = frozenset({"TableScan", "Limit", "Projection", "Filter", "SubqueryAlias"})
"""Parts of a plan below which a scan with a limit is the only one."""
