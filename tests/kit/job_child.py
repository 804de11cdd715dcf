"""A process that runs jobs over a shared Valkey, and kills or stops itself at a chosen step.

It reads commands from standard input, one JSON object per line, and prints their results.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

from caraway_core.errors import CarawayError
from caraway_core.ids import CatalogVersion, ExecutorId, NodeId, PrincipalId
from caraway_core.manifest.values.runtime import JobSettings as JobSettings
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_plugins.stores import folder
from caraway_plugins.stores.redis import RedisStateStore
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from caraway_scheduler.jobs.model import JobRequest
from caraway_scheduler.jobs.opening import Jobs, Pace, open_jobs
from caraway_scheduler.jobs.owners import JobOwner
from caraway_serving import spans
from caraway_serving.access import Principal
from tests.kit.engine import snapshot
from tests.kit.job_schedulers import MortalStore

PACE = Pace(round_s=0.1, grace_s=0.3, ttl_s=2.0, expire_every_s=0.2, orphans_every_s=0.2)
ADA = Principal(PrincipalId("ada"), may_write=True)


def main(url: str, root: str, scheduler_id: str, harm: str) -> None:
    """Serve until standard input ends. `harm` is NUMBER:WHEN:SIGNAL, or empty.

    NUMBER counts writes to the state store; if WHEN is `chunk`, writes to the result store.
    """
    asyncio.run(_serve(url, Path(root), scheduler_id, harm))


async def _serve(url: str, root: Path, scheduler_id: str, harm: str) -> None:
    store = MortalStore(RedisStateStore(url, poll_s=0.05))
    if harm:
        _arm(store, harm)
    dispatch = InProcessDispatch(LocalExecutor(EngineSettings(1, None)), ExecutorId("x"), 2)
    await dispatch.install(snapshot({}))
    jobs = await open_jobs(
        store,
        JobOwner.beginning(scheduler_id),
        ResultPlace("file", str(root)),
        JobSettings(2, 100, 3600.0),
        dispatch,
        lambda: (CatalogVersion(1), frozenset()),
        TaskHistory(HistorySettings(), NodeId(scheduler_id), lambda: 0),
        lambda: None,
        PACE,
    )
    working = asyncio.create_task(jobs.run_jobs())
    jobs.begin_jobs()
    _say(up=True)
    async for command in _commands():
        try:
            _say(**await _do(jobs, command))
        except CarawayError as exc:
            _say(error=exc.message, kind=type(exc).__name__)
    working.cancel()
    await asyncio.wait((working,))
    await dispatch.aclose()


async def _do(jobs: Jobs, command: dict[str, Any]) -> dict[str, Any]:
    service = jobs.service
    if "submit" in command:
        request = JobRequest(command["submit"])
        job = await service.submit(ADA, request, spans.start(None), command.get("key", ""))
        return {"job": job.job_id}
    if "finished" in command:
        return {"finished": sum(jobs.tallies.finished.values())}
    job = await service.wait(ADA.id, command["wait"], 60)
    told: dict[str, Any] = {"status": job.status, "epoch": job.epoch, "key": job.result_key}
    if job.status == "SUCCEEDED":
        manifest = await service.manifest(job)
        batches = [batch async for batch in service.read(job, manifest.chunks)]
        table = pa.Table.from_batches(batches, manifest.schema)
        told |= {"rows": table.num_rows, "sum": compute.sum(table["n"]).as_py()}
    return told


def _arm(store: MortalStore, harm: str) -> None:
    number, when, name = harm.split(":")

    def strike() -> None:
        _say(struck=True)
        os.kill(os.getpid(), signal.Signals[name])

    if when == "chunk":
        _arm_results(int(number), strike)
    else:
        store.dies_at = int(number), when
        store.on_death = strike
        store.stays_dead = False


def _arm_results(number: int, strike: Any) -> None:
    write, written = folder.FolderResultStore.write_chunk, 0

    async def write_chunk(
        self: Any,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str = "",
    ) -> ChunkInfo:
        nonlocal written
        written += 1
        if written == number:
            strike()
        return await write(self, key, index, schema, batches, checksum)

    folder.FolderResultStore.write_chunk = write_chunk  # type: ignore[method-assign]


async def _commands() -> AsyncIterator[dict[str, Any]]:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield json.loads(line)


def _say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
