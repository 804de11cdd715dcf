"""Engines with tables, and waits for what becomes of their processes."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from caraway_core.ids import new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.engines import watching
from caraway_executor.engines.causes import Cause
from caraway_executor.engines.engines import Engines
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.process import EngineProcess
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot
from tests.kit.engine_processes import fork_server

CEILING = 600 * 1024 * 1024
HUGE = "SELECT length(repeat('x', 2000000000)) AS n"
PRODUCT = "SELECT count(*) FROM t AS a, t AS b, t AS c WHERE a.n * b.n > c.n"
MANY = "range(1, 10000000)"
ENDLESS = f"SELECT count(*) FROM {MANY} AS a, {MANY} AS b WHERE a.value * b.value < 0"
"""Does not stop when it is cancelled."""


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that does much else, a process that is well may not answer for a second."""
    monkeypatch.setattr(watching, "_SILENT_S", 2.0)
    monkeypatch.setattr(watching, "_SILENT_AT_REST_S", 2.0)


@asynccontextmanager
async def engines(
    catalog: CatalogSnapshot | None = None,
    ceiling: int | None = CEILING,
    planning_timeout_s: float = 10.0,
) -> AsyncIterator[Engines]:
    settings = EngineSettings(2, 256 * 1024 * 1024, planning_timeout_s=planning_timeout_s)
    made = Engines(
        EngineOptions(settings, ceiling, "main"),
        EngineOptions(settings, ceiling, "apart"),
        fork_server(),
    )
    try:
        big = memory(n=list(range(100_000)))
        tables = {"t": memory(n=[1, 2, 3]), "big": big}
        assert await made.install(catalog or snapshot(tables)) == {}
        yield made
    finally:
        pids = [each.pid for each in made.processes]
        made.close()
        for pid in pids:
            await eventually(partial(is_gone, pid), "the engine process is gone")


async def stop(process: EngineProcess) -> None:
    """Stop a process as native code does that holds the interpreter: it reads nothing."""
    os.kill(process.pid, signal.SIGSTOP)

    async def stopped() -> bool:
        tasks = Path(f"/proc/{process.pid}/task").glob("*/stat")
        return all(each.read_text().rpartition(")")[2].split()[0] == "T" for each in tasks)

    await eventually(stopped, "every thread stands still")


async def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


async def opened(made: Engines, sql: str, **options: Any) -> BatchStream:
    return await made.execute(
        new_query_id(), Statement(sql, options.pop("parameters", {}), **options)
    )


async def rows(made: Engines, sql: str, **options: Any) -> list[dict[str, Any]]:
    return await read(await opened(made, sql, **options))


async def read(stream: BatchStream) -> list[dict[str, Any]]:
    return [row for batch in [each async for each in stream] for row in batch.to_pylist()]


async def are_processes(made: Engines, processes: list[Any]) -> bool:
    return made.processes == processes


async def are_none_of(made: Engines, pids: set[int]) -> bool:
    return pids.isdisjoint(each.pid for each in made.processes)


async def has_ended(made: Engines, cause: Cause) -> bool:
    return cause in made.restarts


async def is_retired(made: Engines, process: EngineProcess) -> bool:
    return process in made.main.retired


async def has_work(process: Any) -> bool:
    return bool(process.works)
