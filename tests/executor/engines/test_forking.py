"""A fork server that ends is replaced at once; one that always ends is replaced rarely.

After the end of the runtime, no process is started.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from caraway_core.errors import ShuttingDownError, UnavailableError
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.engines import forking, starting
from caraway_executor.engines.forking import Forking, ForkingShare
from caraway_executor.engines.messages import EngineOptions
from caraway_executor.engines.process import EngineProcess
from caraway_executor.engines.starting import ForkServer
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually
from tests.kit.engine_processes import fork_server

OPTIONS = EngineOptions(EngineSettings(1, 64 * 1024 * 1024), None, "apart")
ENDS_AT_ONCE = "caraway_core.errors"
"""A module that is imported and ends."""


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ForkServer]:
    found: list[ForkServer] = []

    class Counted(ForkServer):
        def __init__(self) -> None:
            super().__init__()
            found.append(self)

    monkeypatch.setattr(forking, "ForkServer", Counted)
    return found


@pytest.fixture
def made(started: list[ForkServer], clock: Clock) -> Iterator[Forking]:
    yield Forking(lambda _process: None, clock=clock)
    for each in started:
        each.close()


def kill(server: ForkServer) -> None:
    os.kill(server._process.pid, signal.SIGKILL)
    server._process.wait()


async def refused(made: Forking) -> int:
    """Return the `Retry-After` of the refusal."""
    with pytest.raises(UnavailableError, match="no engine process can be started") as refusal:
        await made.fork(OPTIONS)
    return refusal.value.retry_after_s


@pytest.fixture
def _ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_FORK_SERVER", ENDS_AT_ONCE)


@pytest.mark.usefixtures("_ends_at_once")
async def test_a_fork_server_that_always_ends_is_not_started_for_each_statement(
    made: Forking, started: list[ForkServer], clock: Clock
) -> None:
    for _ in range(20):
        await refused(made)
    assert len(started) == 2, "one again at once, then no more"
    starts = []
    for _ in range(10):
        clock.now += 36
        for _ in range(5):
            await refused(made)
        starts.append(len(started))
    assert starts == list(range(3, 13)), "one after each pause, however long it goes on"
    assert await refused(made) > 2, "it says when to come back"


@pytest.mark.usefixtures("_ends_at_once")
async def test_a_fork_server_that_works_again_is_used_at_once(
    made: Forking, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    for _ in range(3):
        await refused(made)
    monkeypatch.undo()
    clock.now += 1
    process = await made.fork(OPTIONS)
    assert process.is_alive
    made.close()


async def test_a_fork_server_that_is_killed_is_replaced_without_a_pause(
    made: Forking, started: list[ForkServer]
) -> None:
    for _ in range(3):
        assert (await made.fork(OPTIONS)).is_alive
        kill(started[-1])
        await refused(made)
    assert (await made.fork(OPTIONS)).is_alive
    made.close()


async def test_a_host_that_has_no_room_for_a_process_is_an_error_that_passes(
    made: Forking, started: list[ForkServer], monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    def full() -> ForkServer:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(forking, "ForkServer", full)
        kill(started[0])
        for _ in range(3):
            await refused(made)
    clock.now += 60
    assert (await made.fork(OPTIONS)).is_alive
    made.close()


async def test_no_process_is_started_after_the_end(
    made: Forking, started: list[ForkServer]
) -> None:
    assert (await made.fork(OPTIONS)).is_alive
    made.close()
    with pytest.raises(ShuttingDownError, match="shutting down"):
        await made.fork(OPTIONS)
    assert len(started) == 1


async def test_who_waits_for_a_process_at_the_end_is_refused_at_once(
    made: Forking, started: list[ForkServer]
) -> None:
    os.kill(started[0]._process.pid, signal.SIGSTOP)
    forking = asyncio.ensure_future(made.fork(OPTIONS))
    await asyncio.sleep(0)
    made.close()
    with pytest.raises(ShuttingDownError):
        await forking
    assert len(started) == 1


async def test_owners_of_a_shared_fork_server_hear_of_their_own_processes_and_end_these() -> None:
    shared = Forking(lambda _process: None, fork_server())
    lost: dict[str, list[int]] = {"one": [], "two": []}

    def owner(name: str) -> ForkingShare:
        return ForkingShare(shared, lambda process: lost[name].append(process.pid))

    one, two = owner("one"), owner("two")
    first, second, third = [await each.fork(OPTIONS) for each in (one, two, two)]

    async def were_lost(**pids: list[int]) -> bool:
        return lost == pids

    os.kill(first.pid, signal.SIGKILL)
    await eventually(partial(were_lost, one=[first.pid], two=[]), "its owner hears of it")
    again = await one.fork(OPTIONS)
    one.close()
    await eventually(partial(were_lost, one=[first.pid, again.pid], two=[]), "it ends")
    with pytest.raises(ShuttingDownError):
        await one.fork(OPTIONS)
    assert (second.is_alive, third.is_alive, again.is_alive) == (True, True, False)
    shared.close()
    assert not second.is_alive


async def test_a_process_that_is_started_during_the_end_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = fork_server()
    made = Forking(lambda _process: None, server)
    ended: list[int] = []
    monkeypatch.setattr(EngineProcess, "kill", lambda each, _cause: ended.append(each.pid))

    answered = made._read

    def answer_then_close() -> None:
        answered()
        # A reader may also be called without an answer.
        if all(forked.done() for forked in made._forked.values()):
            made.close()

    monkeypatch.setattr(made, "_read", answer_then_close)
    with pytest.raises(ShuttingDownError):
        await made.fork(OPTIONS)
    (pid,) = ended
    os.kill(pid, signal.SIGKILL)
