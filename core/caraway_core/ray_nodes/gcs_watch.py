"""Ends a head whose state server (GCS) hangs or cannot reach its Redis; runs in `ray start`.

A paused GCS still accepts connections, and a GCS whose Redis is silent waits for it until the
kernel gives up after 15 minutes. So a thread reads a key of the GCS, which asks Redis for it. If it
has no answer for some time, it exits `ray start`. Then the whole node ends, and the process that
started it decides what to do. Before the first answer, the thread also watches whether the GCS
ended, because `ray start` waits for it longer than a minute. In each round it touches a file: the
head ends a node whose watch hangs.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from subprocess import Popen
from typing import Any

from caraway_core.concurrency.clocks import SecondsClock

CODE = 70
"""The exit code of a node that the watch ended."""
ASK_S = 3.0
_PAUSE_S = 2.0
_LOOK_S = 0.2
_SILENCE_S = 8.0
"""With the asks and pauses around it, the node ends 10 to 13 s after the last answer."""
_SILENCE_IN_MEMORY_S = 60.0
"""Without Redis, all state ends with the GCS, so it has more time."""
_FIRST_S = 45.0

Ask = Callable[[], None]
"""Reads a key; fails if there is no answer within `ASK_S`."""


class Silence:
    """Measures how long a server has not answered, without the time in which we were paused."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._silent_s = 0.0

    def answered(self) -> None:
        self._silent_s = 0.0

    def failed(self, took_s: float) -> bool:
        """Count a round without an answer; return whether the silence is too long."""
        # A longer round means that this process was paused, which says nothing about the server.
        self._silent_s += min(took_s, ASK_S + _PAUSE_S)
        return self._silent_s >= self._limit_s


def begin(
    process: "Popen[Any]",
    connect: Callable[[], Ask],
    touch: Callable[[], object],
    *,
    is_durable: bool,
) -> None:
    """Watch a GCS in a thread; `connect` fails as long as it does not listen.

    `touch` is called in each round.
    """
    limit_s = _SILENCE_S if is_durable else _SILENCE_IN_MEMORY_S

    def watch() -> None:
        try:
            reason = cause_of_end(process.poll, connect, limit_s, touch)
        except BaseException as exc:  # noqa: BLE001 -- the watch must not end a node
            # A defect of the watch must not end a node that works.
            print(f"the watch of the state server failed: {exc!r}", file=sys.stderr, flush=True)
            return
        print(f"error: {reason}", file=sys.stderr, flush=True)
        os._exit(CODE)

    threading.Thread(target=watch, name="gcs-watch", daemon=True).start()


def cause_of_end(
    poll: Callable[[], int | None],
    connect: Callable[[], Ask],
    limit_s: float,
    touch: Callable[[], object],
    clock: SecondsClock = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Ask the GCS until the node must end; return the cause."""
    ask, silence, has_answered = None, Silence(_FIRST_S), False
    while True:
        touch()
        at = clock()
        try:
            ask = ask or connect()
            ask()
        except Exception as exc:  # noqa: BLE001 -- every failure counts as silence
            cause = " ".join(str(exc).split()) or type(exc).__name__
            if not has_answered and (code := poll()) is not None:
                return f"the state server (GCS) ended with code {code} before it answered"
            sleep(_PAUSE_S if has_answered else _LOOK_S)
            if silence.failed(clock() - at):
                return f"the state server (GCS) or its Redis does not answer: {cause}"
            continue
        if not has_answered:
            has_answered, silence = True, Silence(limit_s)
        silence.answered()
        sleep(_PAUSE_S)
