"""The credential of a request: headers that are wrong, and values of no kind."""

from datetime import UTC, datetime
from typing import Any

import pytest

from caraway_management.credentials import authentication
from caraway_management.credentials.authentication import KINDS
from caraway_management.domain.refusals import RefusedError

NOW = datetime(2024, 1, 1, tzinfo=UTC)
NO_SESSION: Any = None
"""None of these values is looked up."""


@pytest.mark.parametrize("header", ["Bearer a", "bearer a", "BEARER  a ", "Bearer a\t"])
def test_values_of_headers(header: str) -> None:
    assert authentication.bearer_value(header) == "a"


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic a", "a", "Bearera"])
def test_headers_without_a_value(header: str | None) -> None:
    with pytest.raises(RefusedError, match=r"Missing|Invalid") as caught:
        authentication.bearer_value(header)
    assert caught.value.status == 401
    assert caught.value.headers == {"www-authenticate": 'Bearer realm="caraway"'}


@pytest.mark.parametrize("value", ["", "a", "a.b", "a.b.c.d", "é.b.c", *(k.upper() for k in KINDS)])
async def test_values_of_no_kind(value: str) -> None:
    with pytest.raises(RefusedError, match="Invalid token format"):
        await authentication.find_credential(NO_SESSION, value, NOW, "https://issuer")


@pytest.mark.parametrize("prefix", list(KINDS))
async def test_a_prefix_chooses_the_finder(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: Any = object()

    async def find(_session: Any, value: str, now: datetime) -> Any:
        assert (value, now) == (f"{prefix}x.y.z", NOW)
        return found

    monkeypatch.setitem(authentication.KINDS, prefix, find)
    value = f"{prefix}x.y.z"
    assert await authentication.find_credential(NO_SESSION, value, NOW, "i") is found
