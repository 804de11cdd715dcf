"""Finds out whether the threads of an engine are free, and has them return freed memory.

The engine's allocator keeps freed memory in the thread that had it, and returns it only while this
thread allocates and frees. A thread looks at all its memory once in 10,000 allocations of more
than 1 KiB: then it finds what other threads have freed. So each thread allocates so often.

There are threads of two kinds. One kind computes what partitions exchange. The other one reads
streams for event loops, and computes what needs no exchange: on one core everything.
"""

import asyncio
from functools import cache, cached_property

from datafusion import DataFrame, RecordBatchStream, SessionConfig, SessionContext

from caraway_core.process import cores

_ROUNDS = 6
"""All free memory was returned after 3 to 6 rounds. Free pages are returned one round after they
are found, and not every thread has its share of each.
"""
_ROWS_AT_ONCE = 256
"""A column of 256 numbers is larger than 1 KiB."""
_BATCHES = 250
_COLUMNS = 40


def give_back() -> None:
    """Let all threads that compute rows return freed memory. Takes about 1 s of a core."""
    threads = max(2, cores.available())
    for _ in range(_ROUNDS):
        # Rows are exchanged between partitions, so that each thread has some.
        for _ in _statement(2 * threads).execute_stream():
            pass
    asyncio.run(_read_together(threads))


async def _read_together(streams: int) -> None:
    for _ in range(_ROUNDS):
        await asyncio.gather(*(_read() for _ in range(streams)))


async def _read() -> None:
    async for _ in _statement(1).execute_stream():
        pass


@cache
def _statement(partitions: int) -> DataFrame:
    columns = ", ".join(f"max(v * {number} % 7)" for number in range(1, _COLUMNS + 1))
    config = SessionConfig().with_target_partitions(partitions).with_batch_size(_ROWS_AT_ONCE)
    return SessionContext(config).sql(
        f"SELECT v % {3 * partitions} AS k, {columns} FROM "
        f"(SELECT value AS v FROM generate_series(1, {_BATCHES * _ROWS_AT_ONCE})) GROUP BY 1"
    )


class Probe:
    """A statement that takes no time, once a thread of the engine takes it."""

    async def run_statement(self) -> None:
        """Return once a thread has run the statement."""
        # Starting it blocks until such a thread is free. A thread that calls a model is only free
        # once the event loop has passed on the vectors.
        async for _ in await asyncio.to_thread(self._start):
            pass

    def _start(self) -> RecordBatchStream:
        return self._statement.execute_stream()

    @cached_property
    def _statement(self) -> DataFrame:
        return SessionContext(SessionConfig().with_target_partitions(1)).sql("SELECT 1")
