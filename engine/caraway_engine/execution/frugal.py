"""Retries statements that ran out of memory: in one partition, which can spill.

Sorts, windows and groupings spill in each partition. But merging sorted partitions does not spill,
and finds no memory left by the partitions. One partition has nothing to merge.
Whole tables in memory are read so, too: batches of 8,192 rows suit the engine's operators. Where
none follows, each batch is only exported and sent by itself, so they are larger.
"""

from collections.abc import Callable
from typing import Any

from datafusion import SessionContext, col
from datafusion.catalog import Table

from caraway_engine.errors import engine_messages
from caraway_engine.execution.contexts import Contexts


def may_help(exc: BaseException) -> bool:
    """Return whether a failure means that memory was exhausted."""
    return isinstance(exc, Exception) and engine_messages.EXHAUSTED.find(exc) is not None


def start(contexts: Contexts, dataframe: Any) -> object:
    """Plan for one partition, and start running it with the memory of all statements. Blocks."""
    logical = dataframe.logical_plan()
    return execute(
        contexts, contexts.serial.create_dataframe_from_logical_plan(logical).execution_plan()
    )


def execute(contexts: Contexts, plan: object) -> Any:
    """Start a plan with the memory of the main context, one partition after another."""
    return ChainedPartitions(contexts.main, plan)


class ChainedPartitions:
    """Runs the partitions of a plan one after another."""

    def __init__(self, context: SessionContext, plan: Any) -> None:
        self._context = context
        self._plan = plan
        self._left = list(range(1, plan.partition_count))
        self._stream: Any = context.execute(plan, 0)

    async def __anext__(self) -> Any:
        while True:
            try:
                return await self._stream.__anext__()
            except StopAsyncIteration:
                if not self._left:
                    raise
                self._stream = self._context.execute(self._plan, self._left.pop(0))


def start_whole_read(contexts: Contexts, dataframe: Any, rows: Callable[[], Table]) -> object:
    """Start a statement that only names columns of one table in memory.

    If the engine does not have to work on them, they are read from `rows`, in large batches. The
    partitions are read one after another, because reading memory takes no time.
    """
    if dataframe.execution_plan().children():
        return dataframe.execute_stream()
    names = [field.name.replace('"', '""') for field in dataframe.schema()]
    columns = [col(f'"{name}"') for name in names]
    listed = contexts.reading.read_table(rows()).select(*columns)
    return ChainedPartitions(contexts.reading, listed.execution_plan())
