"""Runs two schedulers in one process, with one state store and one result folder."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from caraway_core.ids import ExecutorId
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_gateway.composition.backend import Backend
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from tests.kit.job_schedulers import MortalStore
from tests.kit.runtime import Running, running

NEVER_S = 3600.0


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One of the schedulers, and its view of the state store."""

    running: Running
    store: MortalStore


async def scheduler(
    stack: AsyncExitStack, folder: Path, name: str, manifest: str, poll_s: float = NEVER_S
) -> Scheduler:
    """Start a scheduler; it polls for writes of other schedulers only every `poll_s`."""
    own = folder / name
    own.mkdir(exist_ok=True)
    file = SqliteStateStore(folder / "state.db", poll_s=poll_s)
    stack.push_async_callback(file.aclose)
    store = MortalStore(file)
    dispatch = InProcessDispatch(LocalExecutor(EngineSettings(1, None)), ExecutorId(name), 1)
    stack.push_async_callback(dispatch.aclose)
    backend = Backend(dispatch, is_scheduler=True, scheduler_id=name, state=store, is_shared=True)
    location = f"  scheduler: {{state_location: {folder / 'results'}}}\n"
    text = manifest.replace("runtime:\n", "runtime:\n" + location, 1)
    made = await stack.enter_async_context(running(own, text, backend=backend))
    return Scheduler(made, store)


@asynccontextmanager
async def pair(
    folder: Path, manifest: str, poll_s: float = NEVER_S
) -> AsyncIterator[tuple[Scheduler, Scheduler]]:
    """Serve a manifest with two schedulers; it must have a section `runtime`."""
    async with AsyncExitStack() as stack:
        one = await scheduler(stack, folder, "one", manifest, poll_s)
        two = await scheduler(stack, folder, "two", manifest, poll_s)
        yield one, two
