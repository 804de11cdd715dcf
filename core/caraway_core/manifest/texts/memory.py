"""The amount of memory that this process may use: the machine's, or less under a cgroup limit."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from caraway_core.manifest.texts import units

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%")


def total_bytes(limit_files: Sequence[Path] = _CGROUP_LIMITS) -> int:
    """Return the memory of the machine, or the cgroup's limit if that is smaller."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *filter(None, map(_limit, limit_files))])


def resident_bytes() -> int:
    """Return the memory that this process has now."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def limit_bytes(value: object) -> int:
    """Read a size, or a share of the memory such as `80%`.

    Raises:
        ValueError: it is neither, or a share of nothing or of more than all.
    """
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        size = units.size_bytes(value)
    elif 0 < float(match[1]) <= 100:
        size = int(total_bytes() * float(match[1]) / 100)
    else:
        raise ValueError(f"'{value}' is not a share of the memory; write 1% to 100%")
    if size == 0:
        raise ValueError("must be more than 0 bytes")
    return size


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isascii() and text.isdigit() else None
