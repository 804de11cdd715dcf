"""Fixtures that tests of one loop share."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.kit.shared_runtime import entered

STEPS: list[str] = []


@asynccontextmanager
async def counting() -> AsyncIterator["asyncio.Queue[int]"]:
    """A queue with one number."""
    queue: asyncio.Queue[int] = asyncio.Queue()
    STEPS.append("entered")
    queue.put_nowait(1)
    yield queue
    STEPS.append("left")


@pytest.fixture(scope="module")
def queue(loop_of_module: asyncio.Runner) -> Iterator["asyncio.Queue[int]"]:
    with entered(loop_of_module, counting) as made:
        yield made
    assert STEPS == ["entered", "left"]


async def test_a_test_uses_what_was_made_before(queue: "asyncio.Queue[int]") -> None:
    assert await queue.get() == 1
    queue.put_nowait(2)


async def test_the_next_test_is_on_the_same_loop(
    queue: "asyncio.Queue[int]", loop_of_module: asyncio.Runner
) -> None:
    assert await queue.get() == 2
    assert asyncio.get_running_loop() is loop_of_module.get_loop()
