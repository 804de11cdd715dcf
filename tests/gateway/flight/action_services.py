"""A Flight service without data, whose actions answer from fixed rows."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
from pyarrow import flight

from caraway_serving.access import Keyring
from tests.gateway.flight.serving import Serving, bearer, serving
from tests.kit.jobs import FakeJobService

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
ROWS = pa.record_batch([[1, 2], ["a", None]], schema=SCHEMA)


@asynccontextmanager
async def service_of(keys: Keyring | None = None) -> AsyncIterator[tuple[Serving, FakeJobService]]:
    service = FakeJobService()
    async with serving(keys=keys, service=service) as server:
        yield server, service
        assert service.open_reads == 0


def act(
    name: str, body: dict[str, Any] | bytes, key: str = ""
) -> Callable[[flight.FlightClient], bytes]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def ask(connected: Any) -> bytes:
        options = bearer(key) if key else None
        (result,) = connected.do_action(flight.Action(name, content), options)
        return bytes(result.body.to_pybytes())

    return ask


async def answer(server: Serving, name: str, body: dict[str, Any], key: str = "") -> Any:
    return json.loads(await server.ask(act(name, body, key)))
