"""Reads lists page by page, and waits for deployments. No I/O."""

import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

from caraway.errors import BrokenResponseError
from caraway.requests.parsing import Row

PAGE = 100
WAIT_S = 2.0
"""The time for which the service waits for a change before it answers that there was none."""
UNFINISHED = frozenset({"queued", "in_progress"})


def first_page(fetch: Callable[..., object], arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a method for its first page; some lists have one page only."""
    is_paged = "limit" in inspect.signature(fetch).parameters
    return {"limit": PAGE, **arguments} if is_paged else dict(arguments)


def next_page(arguments: Mapping[str, Any], answer: Row) -> tuple[list[Row], dict[str, Any] | None]:
    """Return the entries of a page, and the arguments for the next one if there may be one.

    Raises:
        BrokenResponseError: the answer is not a page.
    """
    lists = [each for each in answer.values() if isinstance(each, list)]
    if len(lists) != 1:
        raise BrokenResponseError("expected an object with one list from the service")
    rows: list[Row] = lists[0]
    if "next_cursor" in answer:
        cursor = answer["next_cursor"]
        return rows, {**arguments, "cursor": cursor} if cursor else None
    limit = arguments.get("limit")
    if limit is None or len(rows) < limit:
        return rows, None
    return rows, {**arguments, "offset": arguments.get("offset", 0) + limit}


class Watch:
    """Notices when the state of a deployment changes, and when it ends."""

    def __init__(self, timeout_s: float | None, on_change: Callable[[Row], object] | None) -> None:
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._on_change = on_change
        self._last: tuple[object, ...] = ()

    def is_over(self, deployment: Row) -> bool:
        """Return whether a deployment has ended, or the time is up."""
        names = ("status", "error_code", "error_message")
        state = tuple(deployment.get(name) for name in names)
        if state != self._last and self._on_change is not None:
            self._on_change(deployment)
        self._last = state
        if deployment.get("status") not in UNFINISHED:
            return True
        return self._deadline is not None and time.monotonic() >= self._deadline
