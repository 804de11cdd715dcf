"""Limits the memory that Arrow allocates in this process.

Flight decompresses a message before its size can be checked, and some kilobytes may become
gigabytes. With a limit the allocation fails, and with it the call in place of the process.
"""

import contextlib
import os
import resource
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from caraway_core.manifest.texts import memory

_SHARE = 0.6
"""Of the memory of the machine or container. The rest is for Python, gRPC and other processes."""
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
_NEVER = "2"


@contextlib.contextmanager
def limited(most_bytes: int | None = None) -> Iterator[None]:
    """Limit all that Arrow allocates, if it is imported in the block for the first time.

    There is no limit where address space costs memory.
    """
    if "pyarrow" in sys.modules or not _may_reserve():
        yield
        return
    most_bytes = most_bytes or int(memory.total_bytes() * _SHARE)
    variables = {
        # Arrow's allocator reads them when it is loaded. It takes this much address space, and no
        # memory yet, and asks the system for no more.
        "MIMALLOC_RESERVE_OS_MEMORY": f"{most_bytes >> 10}KiB",
        "MIMALLOC_ARENA_RESERVE": "0",
        "MIMALLOC_DISALLOW_OS_ALLOC": "1",
    }
    with _set(variables):
        yield


@contextlib.contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment in the block; no process that starts later gets them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _may_reserve() -> bool:
    """Return whether the system gives unused address space, and does not count it."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return False
    try:
        return _OVERCOMMIT.read_text().strip() != _NEVER
    except OSError:
        return False
