import asyncio
import gc
import threading
from typing import NoReturn

import pytest
from starlette.requests import Request

from caraway_serving import parsing, scopes
from caraway_serving.errors import RefusedRequestError
from caraway_serving.room import BodyMemory, Lease

LARGE = b'["' + b"x" * parsing.INLINE_BYTES + b'"]'


def request(lease: Lease | None = None) -> Request:
    return Request({"type": "http", "headers": [], scopes.LEASE: lease})


async def test_small_body_is_parsed_where_it_is() -> None:
    here = threading.get_ident()
    assert await parsing.parsed(request(), b"[]", lambda _: threading.get_ident()) == here


async def test_large_body_is_parsed_in_a_thread_without_the_collector() -> None:
    def parse(body: bytes) -> tuple[int, int, bool]:
        return len(body), threading.get_ident(), gc.isenabled()

    size, thread, is_collected = await parsing.parsed(request(), LARGE, parse)
    assert (size, is_collected) == (len(LARGE), False)
    assert thread != threading.get_ident()
    assert gc.isenabled()


async def test_failure_of_a_parser_reaches_the_caller() -> None:
    def parse(_body: bytes) -> None:
        raise ValueError("no")

    for body in (b"[]", LARGE):
        with pytest.raises(ValueError, match="no"):
            await parsing.parsed(request(), body, parse)
    assert gc.isenabled()


def never(_body: bytes) -> NoReturn:
    pytest.fail("a refused body was parsed")


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"[" * 200, 400, "nested too deeply; at most 128 levels are allowed"),
        (b"[" + b"1," * 20 + b"1]", 413, "more than 20 values; send it in smaller parts"),
    ],
)
@pytest.mark.parametrize("padding", [b"", b" " * parsing.INLINE_BYTES])
async def test_body_beyond_the_limits_is_not_parsed(
    body: bytes, status: int, says: str, padding: bytes
) -> None:
    most = 1000 if status == 400 else 20
    with pytest.raises(RefusedRequestError, match=says) as refused:
        await parsing.parsed(request(), body + padding, never, most)
    assert refused.value.status == status


async def test_memory_of_what_bodies_become_is_limited() -> None:
    room = BodyMemory(10 * len(LARGE))
    unfolded = BodyMemory(3 * len(LARGE), wait_s=0.01)
    first, second = Lease(room, unfolded), Lease(room, unfolded)
    await parsing.parsed(request(first), LARGE, len)
    with pytest.raises(RefusedRequestError, match="all of the available memory") as refused:
        await parsing.parsed(request(second), LARGE, len)
    assert refused.value.status == 503
    first.end()
    await parsing.parsed(request(second), LARGE, len)
    second.end()
    assert unfolded.taken_bytes == room.taken_bytes == 0


async def test_body_that_becomes_more_than_all_memory_takes_all_of_it() -> None:
    unfolded = BodyMemory(len(LARGE), wait_s=0.01)
    lease = Lease(BodyMemory(len(LARGE)), unfolded)
    await parsing.parsed(request(lease), LARGE, len)
    assert unfolded.taken_bytes == len(LARGE)
    with pytest.raises(RefusedRequestError):
        await parsing.parsed(request(Lease(BodyMemory(1), unfolded)), LARGE, len)
    lease.end()


async def test_loop_goes_on_while_a_large_body_is_parsed() -> None:
    has_gone_on = threading.Event()
    asyncio.get_running_loop().call_soon(has_gone_on.set)
    assert await parsing.parsed(request(), LARGE, lambda _: has_gone_on.wait(60))
