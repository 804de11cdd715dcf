"""Bodies that say too much are refused unread, and room is given back however a request ends."""

import asyncio

import pytest
from starlette.types import Scope

from caraway_serving.failures import ErrorShapes
from caraway_serving.gates.bounds import BodyGate
from caraway_serving.room import FREE_BYTES, BodyMemory
from caraway_serving.scopes import LEASE
from tests.serving.gates.asking import Route, ask, scope

LIMIT = 1_000_000
SHAPES = ErrorShapes(as_error=("/v1/queries",))


def gate(route: Route, room: BodyMemory | None = None) -> BodyGate:
    return BodyGate(route, LIMIT, room or BodyMemory(LIMIT), SHAPES)


@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/v1/sql", "0", 200),
        ("/v1/sql", str(LIMIT), 200),
        ("/v1/sql", str(LIMIT + 1), 413),
        ("/v1/sql", "9" * 40, 413),
        ("/v1/sql", "9" * 5_000, 413),
        ("/v1/sql", "0" * 5_000 + "1", 413),
        ("/v1/sql", "", 200),
        ("/v1/sql", "-1", 200),
        ("/v1/sql", "many", 200),
        ("/v1/sql", "\xb2", 200),
        ("/health", str(128 * 1024), 200),
        ("/health", str(128 * 1024 + 1), 413),
        ("/v1/ready", str(128 * 1024 + 1), 413),
        ("/v1/ready/", str(128 * 1024 + 1), 200),
    ],
)
async def test_declared_length_decides_before_the_body_is_read(
    path: str, length: str, status: int
) -> None:
    route = Route()
    answer = await ask(gate(route), scope(path, content_length=length))
    assert answer.status == status
    assert len(route.seen) == (status == 200)


async def test_refusal_names_the_limit_in_the_shape_of_the_route() -> None:
    answer = await ask(gate(Route()), scope("/v1/queries", content_length=str(LIMIT + 1)))
    assert answer.body.startswith(b'{"error"') and str(LIMIT).encode() in answer.body


class Taking(Route):
    """A route that takes room for its body and then fails, waits or ends."""

    def __init__(self, room: BodyMemory, size: int) -> None:
        super().__init__()
        self.room, self.size = room, size
        self.took = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def __call__(self, asked: Scope, *rest: object) -> None:
        await asked[LEASE].grow(self.size)
        self.took.set()
        await self.goes_on.wait()
        await super().__call__(asked, *rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["end", "failure", "cancel"])
async def test_room_is_given_back_however_the_request_ends(ending: str) -> None:
    room = BodyMemory(LIMIT)
    route = Taking(room, 10 * FREE_BYTES)
    asking = asyncio.ensure_future(ask(gate(route, room), scope()))
    await route.took.wait()
    assert room.taken_bytes == 10 * FREE_BYTES
    route.raises = OSError("broken") if ending == "failure" else None
    if ending == "cancel":
        asking.cancel()
    route.goes_on.set()
    await asyncio.wait((asking,))
    assert room.taken_bytes == 0
    assert asking.cancelled() if ending == "cancel" else True


async def test_each_request_has_a_lease_of_its_own() -> None:
    route, room = Route(), BodyMemory(LIMIT)
    first = await ask(gate(route, room), scope())
    second = await ask(gate(route, room), scope())
    assert first.status == second.status == 200
    assert route.seen[0][LEASE] is not route.seen[1][LEASE]


async def test_what_is_not_http_has_no_lease() -> None:
    route = Route()
    await ask(gate(route), scope(kind="lifespan"))
    assert LEASE not in route.seen[0]
