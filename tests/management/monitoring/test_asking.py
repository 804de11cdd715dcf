"""Rows of runtimes: statements that they refuse, and answers that are none."""

import json
from typing import Any

import httpx
import pytest

from caraway_core.errors import UnavailableError
from caraway_management.monitoring import asking
from caraway_management.monitoring.asking import StatementRefusedError

MOST = 4096


def answering(status: int, content: bytes) -> httpx.Response:
    """Return an answer whose bytes are still to be read."""
    return httpx.Response(status, stream=httpx.ByteStream(content))


async def ask(answer: httpx.Response | Exception, sql: str = "SELECT 1") -> Any:
    def respond(request: httpx.Request) -> httpx.Response:
        assert request.url == "http://runtime:8090/v1/sql"
        assert request.headers["x-api-key"] == "hunter2"
        assert request.headers["accept-encoding"] == "identity"
        assert request.content.decode() == sql
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with httpx.AsyncClient(transport=httpx.MockTransport(respond)) as client:
        return await asking.ask(client, "http://runtime:8090/", "hunter2", sql, MOST)


@pytest.mark.parametrize("rows", [[], [{}], [{"a": 1}, {"a": None, "é": "ü"}]])
async def test_rows(rows: list[dict[str, Any]]) -> None:
    assert await ask(answering(200, json.dumps(rows).encode()), "SELECT 'é'") == rows


@pytest.mark.parametrize("status", [400, 403, 422])
async def test_statements_that_are_refused(status: int) -> None:
    with pytest.raises(StatementRefusedError, match=f"answered {status}") as caught:
        await ask(answering(status, b"no table 't'\xff"))
    assert caught.value.text == "no table 't'\ufffd"


@pytest.mark.parametrize("status", [204, 301, 401, 404, 429, 500, 503])
async def test_other_statuses_pass(status: int) -> None:
    with pytest.raises(UnavailableError, match=f"answered {status}") as caught:
        await ask(answering(status, b"hunter2"))
    assert type(caught.value) is UnavailableError
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("body", ["", "<p>", "[", "[" * 2_000, '[{"a": ', "\udcff"])
async def test_bodies_that_are_not_json(body: str) -> None:
    with pytest.raises(UnavailableError, match="the runtime does not answer"):
        await ask(answering(200, body.encode(errors="surrogateescape")))


@pytest.mark.parametrize("body", [None, {}, {"rows": []}, [1], [[]], "a", [{}, None]])
async def test_bodies_that_are_no_rows(body: Any) -> None:
    with pytest.raises(UnavailableError, match="did not answer with rows"):
        await ask(answering(200, json.dumps(body).encode()))


async def test_rows_are_bounded() -> None:
    assert await ask(answering(200, b"[]" + b" " * (MOST - 2))) == []
    for status in (200, 400):
        with pytest.raises(UnavailableError, match="more than 4 KiB"):
            await ask(answering(status, b"[]" + b" " * (MOST - 1)))


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("refused"), httpx.ReadTimeout("late"), httpx.ReadError("cut")]
)
async def test_runtimes_that_are_away(error: Exception) -> None:
    with pytest.raises(UnavailableError, match=type(error).__name__):
        await ask(error)
