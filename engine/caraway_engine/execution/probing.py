"""Finds out whether the threads that compute rows are free."""

import asyncio
from functools import cached_property

from datafusion import DataFrame, RecordBatchStream, SessionConfig, SessionContext


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
