"""Real processes over a real Valkey, killed or paused at every step of a job."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from caraway_plugins.stores.redis import RedisStateStore
from caraway_scheduler.jobs.records import JOBS, job_id_in
from tests.kit import valkey
from tests.kit.deadlines import until

ROWS = 60_000
NUMBERS = f"SELECT value AS n FROM generate_series(1, {ROWS})"
DONE = {"status": "SUCCEEDED", "rows": ROWS, "sum": ROWS * (ROWS + 1) // 2}
# Writes to the state store: create, begin, manifest, succeed. Chunks are written in between.
STEPS = ["1:after", "2:before", "2:after", "1:chunk", "2:chunk", "3:before", "3:after", "4:before",
         "4:after"]  # fmt: skip
IS_DONE = {"4:after"}
KILLED = {"1:chunk", "4:after"}
PAUSED = {"2:after", "4:before"}
"""The steps of `make test`, where test_takeover.py has all of them in one process."""


def steps(quick: set[str]) -> list[Any]:
    return [pytest.param(each, marks=() if each in quick else pytest.mark.full) for each in STEPS]


@dataclass
class Child:
    """A scheduler in its own process, which answers each command with a line."""

    process: "subprocess.Popen[str]"

    def send(self, **command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def heard(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the process ended"
        said: dict[str, Any] = json.loads(line)
        return said

    def ask(self, **command: Any) -> dict[str, Any]:
        self.send(**command)
        return self.heard()


@contextlib.contextmanager
def child(url: str, results: Path, scheduler_id: str, harm: str = "") -> Iterator[Child]:
    command = [sys.executable, "-m", "tests.kit.job_child", url, str(results), scheduler_id, harm]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[3],
    ) as process:  # fmt: skip
        try:
            made = Child(process)
            assert made.heard() == {"up": True}
            yield made
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[valkey.Server]:
    with valkey.serving() as running:
        yield running


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def other(server: valkey.Server, results: Path) -> Iterator[Child]:
    """The scheduler that survives and finishes the jobs of others."""
    with child(server.url, results, "other") as running:
        yield running


def job_of(server: valkey.Server) -> str:
    """Find the newest job in the state store, because its owner died before it could answer."""

    async def look() -> str:
        store = RedisStateStore(server.url)
        try:
            # The ids of jobs sort by the time of their creation.
            return job_id_in((await store.scan(f"{JOBS}ada/"))[-1].key)
        finally:
            await store.aclose()

    return asyncio.run(look())


def check_results(results: Path, told: dict[str, Any]) -> None:
    """Check that only the chunks of the job's last owner remain."""
    job_id = told["key"].rpartition(".")[0]
    until(
        lambda: [each.name for each in results.glob(f"{job_id}.*")] == [told["key"]],
        "what the lost owner stored is removed",
    )


@pytest.mark.parametrize("step", steps(KILLED))
def test_killed_owner_is_followed_by_another(
    server: valkey.Server, results: Path, other: Child, step: str
) -> None:
    with child(server.url, results, f"killed-{step}", f"{step}:SIGKILL") as owner:
        owner.send(submit=NUMBERS)
        assert owner.process.wait(60) == -signal.SIGKILL
        told = other.ask(wait=job_of(server))
    assert DONE.items() <= told.items()
    assert told["epoch"] == (1 if step in IS_DONE else 2)
    check_results(results, told)


@pytest.mark.parametrize("step", steps(PAUSED)[1:])
def test_paused_owner_cannot_overwrite_when_it_resumes(
    server: valkey.Server, results: Path, other: Child, step: str
) -> None:
    with child(server.url, results, f"stopped-{step}", f"{step}:SIGSTOP") as owner:
        owner.send(submit=NUMBERS)
        os.waitpid(owner.process.pid, os.WUNTRACED)
        job_id = job_of(server)
        told = other.ask(wait=job_id)
        assert DONE.items() <= told.items()
        assert told["epoch"] == (1 if step in IS_DONE else 2)
        owner.process.send_signal(signal.SIGCONT)
        # It has recovered, and serves the job as the other one finished it.
        owner.send(wait=job_id)
        said = owner.heard()
        while "status" not in said:
            said = owner.heard()
        assert said == told
        finished = owner.ask(finished=True)["finished"]
        assert finished == (1 if step in IS_DONE else 0)
    assert other.ask(wait=job_id) == told
    check_results(results, told)


def test_store_that_restarts_loses_no_job(tmp_path: Path) -> None:
    with valkey.serving() as server, child(server.url, tmp_path, "one") as one:
        jobs = [one.ask(submit=NUMBERS)["job"] for _ in range(3)]
        server.kill()
        refused = one.ask(submit=NUMBERS)
        assert refused["kind"] == "StateAwayError"
        server.start()
        for job_id in jobs:
            assert DONE.items() <= one.ask(wait=job_id).items()
        again = one.ask(submit=NUMBERS)["job"]
        assert DONE.items() <= one.ask(wait=again).items()
