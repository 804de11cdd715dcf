"""Searches before and after the service that runs them is there."""

from typing import Any

import pytest

from caraway_core.errors import UnavailableError
from caraway_scheduler.dispatch.searches.later import LaterSearchTables


class Tables:
    async def search(self, search: Any, at: Any) -> Any:
        return "rows", search, at

    async def explain(self, search: Any, at: Any) -> Any:
        return "way", search, at


async def test_searches_wait_for_no_service_and_then_are_its_own() -> None:
    later: Any = LaterSearchTables()
    for call in (later.search, later.explain):
        with pytest.raises(UnavailableError, match="is starting and cannot search yet"):
            await call("words", "now")
    later.tables = Tables()
    assert await later.search("words", "now") == ("rows", "words", "now")
    assert await later.explain("words", "now") == ("way", "words", "now")
