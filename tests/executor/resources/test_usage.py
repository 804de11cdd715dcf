"""Memory and processor time of real processes, also of those that end meanwhile."""

import os
import subprocess
import sys
import threading

import pytest

from caraway_executor.resources import usage


def gone() -> int:
    """The id of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_a_process_that_has_ended_uses_nothing() -> None:
    pid = gone()
    assert usage.anonymous_bytes(pid) == 0
    assert usage.used_s(pid) == usage.wanted_s(pid) == usage.waiting_s(pid, None) == 0.0
    assert usage.times_s(pid) == (0.0, 0.0)


def test_memory_grows_with_what_is_kept() -> None:
    before = usage.anonymous_bytes(os.getpid())
    kept = bytearray(os.urandom(1)) * (64 << 20)
    assert usage.anonymous_bytes(os.getpid()) - before > 48 << 20
    assert len(kept) == 64 << 20


def test_processor_time_grows_with_work_of_any_thread() -> None:
    has_worked, was_seen = threading.Event(), threading.Event()

    def work() -> None:
        sum(range(3_000_000))
        has_worked.set()
        was_seen.wait(60)

    before, used = usage.times_s(os.getpid())[0], usage.used_s(os.getpid())
    thread = threading.Thread(target=work)
    thread.start()
    assert has_worked.wait(60)
    # The time of a thread counts until it ends.
    wanted = usage.wanted_s(os.getpid())
    was_seen.set()
    thread.join()
    assert wanted > before and usage.used_s(os.getpid()) >= used


def test_an_unknown_thread_has_not_waited() -> None:
    assert usage.waiting_s(os.getpid(), 2**22 + 1) == 0.0
    assert usage.waiting_s(os.getpid(), threading.get_native_id()) >= 0.0


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0.0 GiB"), (2**30, "1.0 GiB"), (3 * 2**29, "1.5 GiB")]
)
def test_sizes_are_worded(size_bytes: int, text: str) -> None:
    assert usage.worded(size_bytes) == text
