"""Signs of life of a head: one that the head looks for, and one that the kubelet looks for.

The watch of the state server (`ray_nodes.gcs_watch`) runs in `ray start`, and touches a file. The
head ends a node whose watch hangs. The head touches a file, too, which the liveness probe reads.
"""

import asyncio
import contextlib
import time
from pathlib import Path

from caraway_core.concurrency.clocks import SecondsClock
from caraway_core.ray_nodes.gcs_watch import Silence

ALIVE = "alive"
"""The file in the data directory that the liveness probe reads."""
_TOUCH_S = 2.0
_LOOK_S = 5.0
_STUCK_S = 60.0
"""The watch touches its file every 2 to 8 s."""


async def keep_alive(file: Path) -> None:
    """Touch a file until cancelled, for as long as the event loop runs."""
    while True:
        with contextlib.suppress(OSError):
            file.touch()  # noqa: ASYNC240 -- one touch; a slow disk is the sign of a hang
        await asyncio.sleep(_TOUCH_S)


async def until_stuck(
    sign: Path,
    clock: SecondsClock = time.monotonic,
    look_s: float = _LOOK_S,
    limit_s: float = _STUCK_S,
) -> None:
    """Wait until the watch that touches the file has not done so for some time."""
    silence, seen = Silence(limit_s), _touched(sign)
    while True:
        at = clock()
        await asyncio.sleep(look_s)
        now = _touched(sign)
        if now != seen:
            silence.answered()
            seen = now
        elif silence.failed(clock() - at):
            return


def _touched(sign: Path) -> int | None:
    try:
        return sign.stat().st_mtime_ns
    except OSError:
        return None
