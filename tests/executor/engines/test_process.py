"""The server of an engine process keeps no work of dropped streams."""

import asyncio
import gc

from tests.kit.deadlines import eventually
from tests.kit.engine_pools import engines, opened

LONG = "SELECT value FROM range(1, 1000000000)"


async def test_a_stream_that_is_dropped_without_a_word_stops_its_work() -> None:
    """Readers of Flight and HTTP that go away leave streams that have rows at hand."""
    async with engines() as made:
        for _ in range(3):
            stream = await opened(made, LONG)
            await anext(aiter(stream))
            # More rows than the reader takes, so that no read waits for any.
            await asyncio.to_thread(lambda: None)
            del stream
        gc.collect()
        (process,) = made.processes

        async def is_idle() -> bool:
            return not process.works

        await eventually(is_idle, "the work has stopped")
