"""Reads the memory and processor time of processes; an ended process uses nothing."""

import os
from contextlib import suppress

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MOST_BYTES = 4096
_TICKS = os.sysconf("SC_CLK_TCK")


def anonymous_bytes(pid: int) -> int:
    """Return the private memory of a process, or 0 if it has ended."""
    with suppress(OSError, IndexError):
        fields = _read(f"/proc/{pid}/statm").split()
        return (int(fields[1]) - int(fields[2])) * _PAGE_BYTES
    return 0


def kept_bytes(pid: int) -> int:
    """Return its private memory without what the system may take back; 0 if it has ended.

    The kernel looks at all pages for this, which takes it some 20 ms for each GiB.
    """
    sizes = _page_sizes(pid)
    return sizes["Anonymous"] - sizes["LazyFree"]


def offered_bytes(pid: int) -> int:
    """Return what the system may take back of it, at the same cost; 0 if it has ended."""
    return _page_sizes(pid)["LazyFree"]


def _page_sizes(pid: int) -> dict[str, int]:
    sizes = {"Anonymous": 0, "LazyFree": 0}
    with suppress(OSError, ValueError):
        for line in _read(f"/proc/{pid}/smaps_rollup").decode().splitlines()[1:]:
            name, size_kib = line.split()[:2]
            sizes[name.rstrip(":")] = int(size_kib) * 1024
    return sizes


def used_s(pid: int) -> float:
    """Return the processor time that a process has used, to a hundredth of a second."""
    with suppress(OSError, IndexError):
        fields = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def times_s(pid: int) -> tuple[float, float]:
    """Return the processor time that a process's threads have used, and waited for."""
    used_ns = waited_ns = 0
    # Its folder goes with the process, at any moment.
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError, ValueError):
                used, waited = _read(f"/proc/{pid}/task/{task}/schedstat").split()[:2]
                used_ns, waited_ns = used_ns + int(used), waited_ns + int(waited)
    return used_ns / 1e9, waited_ns / 1e9


def wanted_s(pid: int) -> float:
    """Return the processor time that a process has used or waited for.

    On a busy machine, a low-priority process uses little, however much it has to do.
    """
    return sum(times_s(pid))


def waiting_s(pid: int, thread: int | None) -> float:
    """Return how long a thread has waited for a processor, or 0 if that is unknown."""
    with suppress(OSError, IndexError):
        fields = _read(f"/proc/{pid}/task/{thread or pid}/schedstat").split()
        return int(fields[1]) / 1e9
    return 0.0


def _read(path: str) -> bytes:
    """Read a small system file. A file object would take four times as long."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, _MOST_BYTES)
    finally:
        os.close(file)


def worded(size_bytes: int) -> str:
    """Format a size for users."""
    return f"{size_bytes / 2**30:.1f} GiB"
