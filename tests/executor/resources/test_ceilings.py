"""Processes that take more memory than they may are ended, with a word on why."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from caraway_core.manifest.texts import memory
from caraway_core.suspects import End
from caraway_executor.resources import ceilings, usage
from caraway_executor.resources.ceilings import Ceiling, ceiling_bytes
from tests.kit.deadlines import until

MIB = 1024 * 1024
_GROWS = """
import sys
held = []
while True:
    size = int(sys.stdin.readline())
    held.append(b"x" * size)
    print("ok", flush=True)
"""


@contextmanager
def growing() -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", _GROWS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def grow(process: "subprocess.Popen[str]", size_bytes: int) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{size_bytes}\n")
    process.stdin.flush()
    # It may be killed before it prints, or while it does.
    assert "ok\n".startswith(process.stdout.readline())


def test_a_process_beyond_its_ceiling_is_ended_with_the_cause() -> None:
    ends: list[End] = []
    ceiling = Ceiling(64 * MIB, ends.append, look_s=0.01)
    with growing() as process:
        ceiling.follow(process.pid)
        grow(process, 64 * MIB)
        assert process.poll() is None
        grow(process, ceiling_bytes(64 * MIB))
        assert process.wait(60) == -signal.SIGKILL
    ceiling.close()
    (end,) = ends
    assert end.cause == "memory"
    assert end.detail.endswith("where 0.1 GiB is allowed")


def test_a_look_that_fails_is_not_the_last(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The thread ended at its first failure, and nothing bounded the memory."""
    measure, failures = usage.anonymous_bytes, [ValueError("odd"), ValueError("odd")]

    def measured(pid: int) -> int:
        if failures:
            raise failures.pop()
        return measure(pid)

    monkeypatch.setattr(ceilings, "anonymous_bytes", measured)
    ceiling = Ceiling(64 * MIB, lambda _end: None, look_s=0.01)
    with growing() as process:
        ceiling.follow(process.pid)
        grow(process, ceiling_bytes(64 * MIB))
        assert process.wait(60) == -signal.SIGKILL
    ceiling.close()
    assert sum("background work failed" in each.message for each in caplog.records) == 1


def test_the_next_process_is_looked_at_and_the_one_before_is_not() -> None:
    ends: list[End] = []
    ceiling = Ceiling(MIB, ends.append, look_s=0.01)
    with growing() as first, growing() as second:
        ceiling.follow(first.pid)
        ceiling.follow(second.pid)
        grow(first, 2 * ceiling_bytes(MIB))
        grow(second, 2 * ceiling_bytes(MIB))
        second.wait(60)
        assert first.poll() is None
    ceiling.close()
    assert len(ends) == 1


def test_a_process_that_is_gone_is_nothing_to_look_at() -> None:
    ceiling = Ceiling(MIB, lambda _end: None, look_s=0.01)
    with growing() as process:
        process.kill()
        process.wait(60)
        ceiling.follow(process.pid)
    ceiling.follow(os.getpid())
    until(lambda: ceiling._pid == os.getpid(), "it looks at another one")
    ceiling._most_bytes = sys.maxsize
    ceiling.close()


def test_a_process_is_ended_for_another_reason_while_it_is_the_one_looked_at() -> None:
    ends: list[End] = []
    ceiling = Ceiling(MIB, ends.append, look_s=60)
    with growing() as first, growing() as second:
        ceiling.follow(second.pid)
        ceiling.end(first.pid, End("hung", "it is another one"))
        ceiling.end(second.pid, End("hung", "it does not stop"))
        assert second.wait(60) == -signal.SIGKILL
        assert first.poll() is None
    ceiling.close()
    assert ends == [End("hung", "it does not stop")]


@pytest.mark.parametrize(
    ("limit", "total", "most"),
    [(256, 64_000, 2_304), (2_048, 64_000, 7_680), (2_048, 4_000, 3_400), (256, 200, 640)],
)
def test_an_executor_may_have_what_the_reference_says(
    monkeypatch: pytest.MonkeyPatch, limit: int, total: int, most: int
) -> None:
    # docs/reference/cli.md, `--memory`: three times the limit and 1,536 MiB.
    monkeypatch.setattr(memory, "total_bytes", lambda: total * MIB)
    assert ceilings.of_executor(limit * MIB) == most * MIB
