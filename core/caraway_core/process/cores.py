"""The cores that this process may use, the machine's or fewer under a cgroup limit; and GPUs."""

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

_QUOTAS: Sequence[Sequence[Path]] = (
    (Path("/sys/fs/cgroup/cpu.max"),),
    (Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")),
)

_TURN_S = 0.001


def take_short_turns() -> None:
    """Let the threads of this process take turns after 1 ms of Python code, not after 5 ms.

    A search makes some hundred short calls of native code. After each it may wait for a turn of
    another thread. Turns cost 2 to 5 % of the processor time of threads that only run Python code.
    """
    sys.setswitchinterval(_TURN_S)


def available(quotas: Sequence[Sequence[Path]] = _QUOTAS) -> int:
    """Return the number of usable cores, rounded up to a whole core."""
    found = [len(os.sched_getaffinity(0))]
    for files in quotas:
        limit = _limit(files)
        if limit is not None:
            found.append(max(1, math.ceil(limit)))
    return min(found)


def _limit(files: Sequence[Path]) -> float | None:
    """Read a CPU quota as a number of cores, from one file or from two."""
    try:
        quota, period = " ".join(file.read_text() for file in files).split()
        limit = int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None  # There is no such file, or it holds no limit: `max`, or -1.
    return limit if limit > 0 else None


def gpus(devices: Path = Path("/dev")) -> int:
    """Return the number of GPUs that this process may use."""
    return len(list(devices.glob("nvidia[0-9]*")))
