"""Gives windows over values that are not numbers a frame of groups.

DataFusion 55 has no RANGE over times of day, bytes, durations, intervals and structs, and
RANGE is the frame of a window that names none. Where such a frame ends with the rows that are equal
to the current one, GROUPS has the same rows.
"""

from collections.abc import Callable

import pyarrow as pa

from caraway_engine.known_faults import scopes, syntax, texts
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_WITHOUT_RANGE: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_time,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
    pa.types.is_duration,
    pa.types.is_interval,
    pa.types.is_struct,
    pa.types.is_map,
)
_DEFAULT = {"units": "Groups", "start_bound": {"Preceding": None}, "end_bound": "CurrentRow"}


def regrouped(sql: str, types: Types) -> str | None:
    """Rewrite a statement whose plan cannot be optimized as it is; None if `mend` finds nothing."""
    if "over" not in sql.lower():
        return None

    def change(statement: Tree) -> bool:
        changed = [mend(scope, types) for scope in scopes.scopes(statement)]
        return any(changed)

    return texts.rewritten(sql, types, change)


def mend(scope: SelectScope, types: Types) -> bool:
    """Frame such windows by groups; return whether there were any."""
    windows = [each for each in scope.expressions() if _is_free_range(each)]
    keys = [[key["expr"] for key in _specification(each)["order_by"]] for each in windows]
    types.types_of(scope, [key for group in keys for key in group])
    found = [
        window
        for window, group in zip(windows, keys, strict=True)
        if any(_has_no_range(scope.types.get(id(key))) for key in group)
    ]
    for each in found:
        frame = _specification(each)["window_frame"]
        _specification(each)["window_frame"] = (
            {**frame, "units": "Groups"} if frame else dict(_DEFAULT)
        )
    return bool(found)


def _specification(call: Tree) -> Tree:
    return call["Function"]["over"]["WindowSpec"]


def _is_free_range(tree: Tree) -> bool:
    if syntax.kind(tree) != "Function" or not tree["Function"]["over"]:
        return False
    window = tree["Function"]["over"].get("WindowSpec")
    if window is None or not window["order_by"]:
        return False
    frame = window["window_frame"]
    return frame is None or (frame["units"] == "Range" and not _has_offset(frame))


def _has_offset(frame: Tree) -> bool:
    bounds = [each for each in (frame["start_bound"], frame["end_bound"]) if isinstance(each, dict)]
    return any(value is not None for each in bounds for value in each.values())


def _has_no_range(type_: pa.DataType | None) -> bool:
    return type_ is not None and any(is_of_kind(type_) for is_of_kind in _WITHOUT_RANGE)
