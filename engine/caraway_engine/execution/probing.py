"""Finds out whether the threads that compute rows are free."""

from functools import cached_property

from datafusion import DataFrame, SessionConfig, SessionContext


class Probe:
    """A statement that takes no time, once a thread of the engine takes it."""

    async def run(self) -> None:
        """Return once a thread has run the statement."""
        async for _ in self._statement.execute_stream():
            pass

    @cached_property
    def _statement(self) -> DataFrame:
        return SessionContext(SessionConfig().with_target_partitions(1)).sql("SELECT 1")
