"""Ends processes that use more memory than they may.

The engine counts the memory of its operators, but not of its functions. So another process checks
the real size, and ends the process before the machine runs out.
"""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from caraway_core.concurrency import tasks
from caraway_core.manifest.texts import memory
from caraway_core.suspects import End
from caraway_executor.resources.usage import anonymous_bytes, worded

logger = logging.getLogger(__name__)
LOOK_S = 0.05
_MIB = 1024 * 1024
_PROGRAM_BYTES = 384 * _MIB
_ENGINE_TIMES = 1.25
_EXECUTOR_TIMES = 3
_EXCHANGED_BYTES = 384 * _MIB
_MOST_SHARE = 0.85
_OOM_SCORE = "600"


def ceiling_bytes(limit_bytes: int, times: float = 2) -> int:
    """Return the memory ceiling of a process whose statements have this limit.

    On an executor, rows that are kept or exchanged may use as much again. The program itself may
    use 384 MiB. The ceiling never exceeds most of the machine or its cgroup.
    """
    wanted = int(times * limit_bytes) + _PROGRAM_BYTES
    return max(limit_bytes, min(wanted, int(memory.total_bytes() * _MOST_SHARE)))


def of_engine(limit_bytes: int | None) -> int | None:
    """Return the memory ceiling of an engine process whose statements have this limit."""
    return None if limit_bytes is None else ceiling_bytes(limit_bytes, _ENGINE_TIMES)


def of_executor(limit_bytes: int) -> int:
    """Return the memory ceiling of an executor process.

    Rows on their way to other executors exist several times: as the engine made them, partitioned,
    and as they are written to the object store. A statement's limit counts none of these.
    """
    return ceiling_bytes(limit_bytes + _EXCHANGED_BYTES, _EXECUTOR_TIMES)


def be_first_to_go() -> None:
    """Make the kernel kill this process before others when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)


class Ceiling:
    """Checks one process at a time, from a thread. Calls `on_end` before it ends one."""

    def __init__(
        self,
        limit_bytes: int,
        on_end: Callable[[End], None],
        look_s: float = LOOK_S,
        most_bytes: int | None = None,
    ) -> None:
        self._limit_bytes = limit_bytes
        self._most_bytes = most_bytes or ceiling_bytes(limit_bytes)
        self._on_end = on_end
        self._look_s = look_s
        self._stopping = threading.Event()
        self._pid = 0
        self._handle = -1
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._look, name="memory ceiling", daemon=True)
        self._thread.start()

    def follow(self, pid: int) -> None:
        """Check this process from now on; does nothing if it is already being checked."""
        with self._lock:
            if pid == self._pid:
                return
            self._let_go()
            with contextlib.suppress(OSError):
                # A pidfd, because the process id may be reused before the process is ended.
                self._handle = os.pidfd_open(pid)
                self._pid = pid

    def close(self) -> None:
        """Stop the thread."""
        self._stopping.set()
        self._thread.join()
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._pid, self._handle = 0, -1

    def _look(self) -> None:
        last = ""
        while not self._stopping.wait(self._look_s):
            try:
                self._look_once()
            except Exception as exc:  # noqa: BLE001 -- the thread must go on
                # Without this thread nothing limits the memory of the process.
                tasks.note(exc, "look at memory", is_logged=repr(exc) != last)
                last = repr(exc)

    def _look_once(self) -> None:
        with self._lock:
            size_bytes = anonymous_bytes(self._pid) if self._pid else 0
            if size_bytes > self._most_bytes:
                allowed = worded(self._limit_bytes)
                detail = f"it used {worded(size_bytes)} where {allowed} is allowed"
                self._end(End("memory", detail))

    def end(self, pid: int, end: End) -> None:
        """End a process for another reason, if it is still the one being checked."""
        with self._lock:
            if pid == self._pid:
                self._end(end)

    def _end(self, end: End) -> None:
        logger.error("process killed", extra={"pid": self._pid, "cause": end.detail})
        with contextlib.suppress(OSError):
            self._on_end(end)
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        self._let_go()
