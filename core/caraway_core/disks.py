"""Turns failures of disks into errors of ours: a disk without room, and one that fails."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caraway_core.errors import DiskFullError, ResultStoreAwayError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_LEAST_BYTES = 64 * 1024


def is_full(exc: OSError) -> bool:
    """Tell whether a write failed for want of room: a disk, a quota or a file limit is used up."""
    return exc.errno in _FULL


@contextmanager
def failing(what: str) -> Iterator[None]:
    """Turn an `OSError` of the block into ours. `what` says what failed, on what.

    The words of the operating system are told, its paths are not.

    Raises:
        DiskFullError: there is no room.
        ResultStoreAwayError: the disk fails, or refuses.
    """
    try:
        yield
    except OSError as exc:
        raise failure(what, exc) from exc


def failure(what: str, exc: OSError) -> DiskFullError | ResultStoreAwayError:
    """Word a failure of a disk."""
    cause = exc.strerror or type(exc).__name__
    if is_full(exc):
        return DiskFullError(f"{what}: {cause}; free or add space there, then send it again")
    return ResultStoreAwayError(f"{what}: {cause}; check the disk and the rights there")


def has_no_room(folder: Path) -> bool:
    """Return whether the disk of a folder has less room than a file of any use takes."""
    try:
        free = os.statvfs(folder)
    except OSError:
        return False
    return free.f_bavail * free.f_frsize < _LEAST_BYTES
