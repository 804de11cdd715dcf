"""Begins plans that scan remote tables by themselves."""

from collections.abc import Callable
from typing import Any

from datafusion import SessionContext

from caraway_engine.errors import engine_messages as messages


def start(dataframe: Any, scratch: Callable[[], SessionContext]) -> Any:
    """Begin a plan; the engine pushes filters into the scans of its tables.

    DataFusion 55 pushes constants, too, and fails where it joins one with a filter of pyarrow.
    Such a plan begins without pushing, in a context that `scratch` makes.
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
