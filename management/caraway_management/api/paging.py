"""Pages of lists: by `limit` and `offset`, or by a cursor where rows are added all the time."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from caraway_management.domain import refusals

MOST_OFFSET = 2**31


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list."""

    limit: int
    offset: int


async def _page(
    limit: Annotated[int, Query(ge=1, le=100, description="At most this many.")] = 20,
    offset: Annotated[int, Query(ge=0, le=MOST_OFFSET, description="Leave out this many.")] = 0,
) -> Page:
    return Page(limit, offset)


Paged = Annotated[Page, Depends(_page)]
"""The parameters of a list by `limit` and `offset`."""


def read_cursor(cursor: str | None) -> int | None:
    """Return the id that a cursor stands for, or None at the start of a list.

    Raises:
        RefusedError: it is not a cursor.
    """
    if cursor is None:
        return None
    if not cursor.startswith("c") or not cursor[1:].isdecimal() or len(cursor) > 20:
        raise refusals.invalid_field("cursor", "must be the next_cursor of an earlier page")
    return int(cursor[1:])


def cursor_after(ids: list[int], limit: int) -> str | None:
    """Return the cursor of the page after these ids, or None if they were the last."""
    return f"c{ids[-1]}" if ids and len(ids) == limit else None
