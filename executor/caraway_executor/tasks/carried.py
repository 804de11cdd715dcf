"""Tasks whose rows travel over channels, because Ray takes longer for a call than they do."""

from collections.abc import Awaitable, Callable, Sequence

import pyarrow as pa

from caraway_core.protocols import wire
from caraway_core.protocols.fleet import Task, TaskReport
from caraway_core.protocols.wire import CarriedAnswer, InputShape
from caraway_executor.answers.kept_tables import KeptTables

Run = Callable[
    [str, Task, Sequence[InputShape], Sequence[pa.Table]],
    Awaitable[tuple[TaskReport, tuple[pa.Table, ...]]],
]
"""Runs a task of a call over the tables of its inputs."""


class CarriedTasks:
    """Runs tasks whose inputs came with the call, and answers with their rows if these are few.

    More rows are kept until they are taken through Ray. It runs on the loop of the worker.
    """

    def __init__(self, run: Run, kept: KeptTables) -> None:
        self._run = run
        self._kept = kept

    async def run_task(
        self,
        call: str,
        task: Task,
        inputs: Sequence[InputShape],
        packed: Sequence[bytes],
        most_bytes: int,
    ) -> CarriedAnswer:
        """Run a task over encoded tables; see `Worker.run_task`."""
        report, tables = await self._run(call, task, inputs, list(map(wire.unpack_table, packed)))
        if sum(size_bytes for _, size_bytes in report.sizes) > most_bytes:
            self._kept.keep(call, tables)
            return CarriedAnswer(report)
        return CarriedAnswer(report, tuple(map(wire.pack_table, tables)))
