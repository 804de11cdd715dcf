"""Maps disk errors to Caraway errors: a full disk, and a failing one."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from caraway_core.errors import DiskFullError, ResultStoreAwayError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_LEAST_BYTES = 64 * 1024


def is_full(exc: OSError) -> bool:
    """Return whether a write failed because a disk, quota or file size limit is exhausted."""
    return exc.errno in _FULL


@contextmanager
def failing(what: str) -> Iterator[None]:
    """Map an `OSError` in the block to a Caraway error. `what` names the operation and its object.

    The message has the operating system's reason but no paths.

    Raises:
        DiskFullError: the disk is full.
        ResultStoreAwayError: the disk fails or denies access.
    """
    try:
        yield
    except OSError as exc:
        raise failure(what, exc) from exc


def failure(what: str, exc: OSError) -> DiskFullError | ResultStoreAwayError:
    """Return the Caraway error for a disk error."""
    cause = exc.strerror or type(exc).__name__
    if is_full(exc):
        return DiskFullError(f"{what}: {cause}; free or add space there, then send it again")
    return ResultStoreAwayError(f"{what}: {cause}; check the disk and the rights there")


def has_no_room(folder: Path) -> bool:
    """Return whether a folder's disk has too little free space for any useful file."""
    try:
        free = os.statvfs(folder)
    except OSError:
        return False
    return free.f_bavail * free.f_frsize < _LEAST_BYTES
