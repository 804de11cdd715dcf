"""Asks the runtimes of projects for rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from caraway_core.errors import UnavailableError


class StatementRefusedError(UnavailableError):
    """A runtime refused a statement for its content; `text` is the reason that it gives."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"the runtime answered {status}")
        self.text = text


async def ask(
    client: httpx.AsyncClient, endpoint: str, key: str, sql: str, most_bytes: int
) -> Sequence[Mapping[str, Any]]:
    """Run a statement on a runtime, and return its rows.

    Raises:
        StatementRefusedError: the runtime does not take the statement.
        UnavailableError: it does not answer, or with more bytes than that.
    """
    headers = {
        "x-api-key": key,
        "content-type": "text/plain",
        "accept": "application/json",
        # The bytes that are counted are the bytes that are kept.
        "accept-encoding": "identity",
    }
    try:
        async with client.stream(
            "POST", f"{endpoint.rstrip('/')}/v1/sql", content=sql.encode(), headers=headers
        ) as response:
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > most_bytes:
                    raise UnavailableError(f"the rows have more than {most_bytes // 1024} KiB")
        if response.status_code in (400, 403, 422):
            raise StatementRefusedError(response.status_code, body.decode(errors="replace"))
        if response.status_code != 200:
            raise UnavailableError(f"the runtime answered {response.status_code}")
        rows = httpx.Response(200, content=bytes(body)).json()
    except (httpx.HTTPError, ValueError, RecursionError) as exc:
        raise UnavailableError(f"the runtime does not answer: {type(exc).__name__}") from exc
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UnavailableError("the runtime did not answer with rows")
    return rows
