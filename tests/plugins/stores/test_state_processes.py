"""State shared by real processes, which survives one that is killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.plugins.stores import adapters, child
from tests.plugins.stores.adapters import StateHarness


@contextmanager
def running(role: str, state: StateHarness) -> Iterator[subprocess.Popen[str]]:
    """Start a child that waits for a line before it opens the store."""
    command = [sys.executable, "-m", child.__name__, role, state.adapter, str(state.folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert read_line(process) == "ready\n"
            yield process
        finally:
            process.kill()


def read_line(process: subprocess.Popen[str]) -> str:
    """Wait for a line; a dead child returns an empty one immediately."""
    assert process.stdout
    return process.stdout.readline()


def start(process: subprocess.Popen[str], line: str = "go") -> None:
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


async def test_acknowledged_writes_survive_sigkill(state: StateHarness) -> None:
    with running("write", state) as process:
        start(process)
        acknowledged = [read_line(process) for _ in range(25)]
        process.send_signal(signal.SIGKILL)
        assert process.stdout
        acknowledged += process.stdout.readlines()
        assert process.wait(60) == -signal.SIGKILL
    async with state.opened() as store:
        records = await store.read_log(child.LOG, 0, 1_000_000)
        for line in acknowledged:
            number, revision, offset = (int(word) for word in line.split())
            entry = await store.get(f"written/{number:06d}")
            assert entry is not None
            assert (entry.value, entry.revision) == (str(number).encode(), revision)
            assert records[offset] == str(number).encode()
        assert await store.append(child.LOG, b"after") == len(records)


async def test_each_revision_has_one_winner_among_processes(state: StateHarness) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(running("contend", state)) for _ in range(2)]
        for process in processes:
            start(process)
        outcomes = [process.communicate(timeout=200)[0] for process in processes]
        assert [process.returncode for process in processes] == [0, 0]
    wins = [line.split() for outcome in outcomes for line in outcome.splitlines()]
    replaced, written, offsets = zip(*wins, strict=True)
    total = 2 * child.WINS
    assert len(wins) == len(set(replaced)) == len(set(written)) == total
    assert sorted(int(offset) for offset in offsets) == list(range(total))
    async with state.opened() as store:
        counter = await store.get(child.COUNTER)
        assert counter is not None and int(counter.value) == total


async def test_watcher_sees_what_another_process_writes(state: StateHarness) -> None:
    store = adapters.make_state(state.adapter, state.folder, time.time)
    watcher = store.watch("written/")
    await store.get("x")
    with running("write", state) as process:
        start(process)
        entry = await anext(watcher)
        assert entry.key == "written/000000"
    await store.aclose()


def test_processes_may_make_a_store_at_once(state: StateHarness) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(running("make", state)) for _ in range(4)]
        for number in range(40):
            for process in processes:
                start(process, str(number))
            assert [read_line(process) for process in processes] == ["made\n"] * 4
