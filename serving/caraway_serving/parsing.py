"""Parses request bodies within limits; large ones away from the event loop.

A parser holds the interpreter and makes many bytes of one. So values are counted first, the memory
of what a body becomes is taken from the budget of all bodies, and one thread parses large bodies
one after another.
"""

import asyncio
import functools
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.requests import Request

from caraway_core.json_texts import json_sizes, strict_json
from caraway_core.json_texts.json_sizes import JsonTooDeepError, JsonTooLargeError
from caraway_serving import scopes
from caraway_serving.errors import RefusedRequestError
from caraway_serving.room import Lease

MOST_VALUES = 500_000
"""The values of a JSON body, in all lists and objects of it."""
MOST_SQL_VALUES = 100_000
"""Those of a statement: they are compared and sent to another process on the event loop."""
MOST_DEPTH = 128
INLINE_BYTES = 128 * 1024
"""Smaller bodies are parsed on the event loop: a thread would take as long."""
_VALUE_BYTES = 64
"""The memory of a value, on average and with its key."""
_Parsed = TypeVar("_Parsed")


def json(body: bytes, hint: str = "") -> Any:
    """Parse a body as JSON.

    Raises:
        RefusedRequestError: 400, the body is not JSON; `hint` says what to send.
    """
    try:
        return strict_json.parse(body)
    except ValueError as exc:
        ending = f"; {hint}" if hint else ""
        raise RefusedRequestError(400, f"the request body is not JSON: {exc}{ending}") from exc


async def parsed(
    request: Request,
    body: bytes,
    parse: Callable[[bytes], _Parsed],
    most_values: int = MOST_VALUES,
) -> _Parsed:
    """Return what `parse`, which may run in a thread, makes of a JSON body.

    Raises:
        RefusedRequestError: the body has too many values, is nested too deeply, or there is no
            memory for it.
    """
    return await parsed_within(scopes.lease(request), body, parse, most_values)


async def parsed_within(
    lease: Lease | None, body: bytes, parse: Callable[[bytes], _Parsed], most_values: int
) -> _Parsed:
    """Do as `parsed`, and take memory from a lease."""
    if len(body) <= INLINE_BYTES:
        check(body, most_values)
        return parse(body)
    count = await in_thread(functools.partial(check, body, most_values))
    await unfold(lease, body, count)

    def work() -> _Parsed:
        with uncollected():
            return parse(body)

    return await in_thread(work)


def check(body: bytes, most_values: int = MOST_VALUES, most_depth: int | None = MOST_DEPTH) -> int:
    """Return at least the number of values of a JSON body.

    Raises:
        RefusedRequestError: 413, it has more values; 400, it is nested too deeply.
    """
    try:
        return json_sizes.check(body, most_values, most_depth)
    except JsonTooLargeError as exc:
        raise RefusedRequestError(
            413, f"the request body is too large: {exc}; send it in smaller parts"
        ) from exc
    except JsonTooDeepError as exc:
        raise RefusedRequestError(
            400, f"the request body is not JSON that is read here: {exc}"
        ) from exc


async def in_thread(work: Callable[[], _Parsed]) -> _Parsed:
    """Do work in the one thread for large bodies, so that they do not compete for the interpreter
    with each other.
    """
    return await asyncio.get_running_loop().run_in_executor(_thread(), work)


async def unfold(lease: Lease | None, body: bytes, values: int) -> None:
    """Take memory for what a body becomes.

    Raises:
        RefusedRequestError: 503, there was none in time.
    """
    if lease is not None:
        # The text is decoded, and its strings are copied.
        await lease.unfold(2 * len(body) + values * _VALUE_BYTES)


def most_values(lease: Lease | None) -> int:
    """Return how many values a body may have if nothing but the memory of bodies limits it."""
    return MOST_VALUES if lease is None else max(1, lease.capacity_bytes // _VALUE_BYTES)


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector from a thread that makes many values, none of them garbage.

    It would look through all of them again and again, and hold the interpreter meanwhile.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "bodies")
