"""A runtime that tests of one module share, on an event loop that goes on from test to test.

`tests/conftest.py` runs a coroutine test with the fixture `loop_of_module` on that loop.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Relay(Generic[T]):
    """Passes calls on to the fake of the current test."""

    def __init__(self, first: T) -> None:
        self.current = first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.current, name)


@contextmanager
def entered(
    runner: asyncio.Runner, making: Callable[[], AbstractAsyncContextManager[T]]
) -> Iterator[T]:
    """Enter an asynchronous context on the loop of a module, and leave it there."""
    stack = AsyncExitStack()

    async def enter() -> T:
        return await stack.enter_async_context(making())

    made = runner.run(enter())
    try:
        yield made
    finally:
        runner.run(stack.aclose())
