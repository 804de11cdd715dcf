"""Starts plans whose remote tables are scanned by the engine."""

from collections.abc import Callable
from typing import Any

from datafusion import SessionContext

from caraway_engine.errors import engine_messages as messages


def start(dataframe: Any, scratch: Callable[[], SessionContext]) -> Any:
    """Start a plan; the engine pushes filters into the scans of its tables.

    DataFusion 55 also pushes constants, and fails when it combines one with a pyarrow filter. Such
    a plan is started without filter pushdown, in a context from `scratch`.
    """
    try:
        return dataframe.execute_stream()
    except Exception as exc:
        if not messages.CONSTANT_FILTER.find(exc):
            raise
    context = scratch()
    context.remove_optimizer_rule("push_down_filter")
    logical = dataframe.logical_plan()
    return context.create_dataframe_from_logical_plan(logical).execute_stream()
