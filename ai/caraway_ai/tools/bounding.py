"""Limits what a tool may return, and how long it may take."""

from dataclasses import dataclass
from typing import Any

from caraway_ai import json_values
from caraway_core.errors import ToolError

_LIST_BYTES = 1
"""The brackets of a list have one byte more than its rows have separators."""
INVOCATION = "tool_invoke"
"""The tool whose result has that of another in it."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """The limits of one call. A model reads every byte of a result, and its window is small."""

    rows: int = 500
    bytes: int = 256 * 1024
    timeout_s: float = 60.0


def bounded(tool_name: str, result: Any, limits: ToolLimits) -> Any:
    """Return a result that is within the limits; the rest of a list of rows is cut off.

    Rows that were cut before are cut further, and so are those of a tool that `tool_invoke` called.

    Raises:
        ToolError: the result is too large and cannot be cut.
    """
    if tool_name == INVOCATION:
        return {**result, "result": bounded(result["tool_id"], result["result"], limits)}
    if _is_cut(result):
        kept = _bounded(tool_name, result["rows"], limits)
        return kept if isinstance(kept, dict) else cut(kept)
    return _bounded(tool_name, result, limits)


def _bounded(tool_name: str, result: Any, limits: ToolLimits) -> Any:
    try:
        size = len(json_values.dumped(result))
    except ValueError as exc:
        raise ToolError(f"tool '{tool_name}' returned what is not JSON: {exc}") from exc
    if size <= limits.bytes and not (isinstance(result, list) and len(result) > limits.rows):
        return result
    if not isinstance(result, list):
        raise ToolError(
            f"the result of tool '{tool_name}' has {size} bytes, and at most {limits.bytes} are "
            "allowed; ask for less"
        )
    kept, used = 0, _LIST_BYTES
    for row in result[: limits.rows]:
        used += len(json_values.dumped(row)) + 1
        if used > limits.bytes:
            break
        kept += 1
    if not kept:
        raise ToolError(
            f"one row of the result of tool '{tool_name}' has more than {limits.bytes} bytes; ask "
            "for fewer columns"
        )
    return cut(result[:kept])


def cut(rows: list[Any]) -> dict[str, Any]:
    """Return the first rows of a longer result, and say that there are more."""
    return {
        "rows": rows,
        "is_truncated": True,
        "note": f"these are the first {len(rows)} rows and there are more; aggregate, filter or "
        "use LIMIT and OFFSET to see others",
    }


def _is_cut(result: object) -> bool:
    """Return whether these are the first rows of a result that was cut before."""
    return (
        isinstance(result, dict)
        and result.keys() == {"rows", "is_truncated", "note"}
        and isinstance(result["rows"], list)
    )
