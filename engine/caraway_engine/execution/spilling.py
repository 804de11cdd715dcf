"""Spill directories for rows that do not fit in memory: one per process, removed after it.

A process holds a lock on its directory, and the kernel releases the lock when the process dies. So
an unlocked directory is left over, even if its process id is in use again. The directory of a
running process is never removed.
"""

import contextlib
import fcntl
import logging
import os
import shutil
import uuid
from pathlib import Path
from threading import Lock

logger = logging.getLogger(__name__)
_PREFIX = "caraway-spill-"
_own: dict[tuple[int, Path], Path] = {}
_making = Lock()


def folder(parent: Path) -> Path:
    """Return the spill directory of this process in `parent`, and remove those of dead processes.

    If it cannot be created, for example on a full disk, return `parent`: few statements spill.
    """
    key = os.getpid(), parent
    with _making:
        if key not in _own:
            try:
                parent.mkdir(parents=True, exist_ok=True)
                remove_left_over(parent)
                _own[key] = _made(parent)
            except OSError as exc:
                logger.warning("cannot create the spill directory", extra={"cause": exc.strerror})
                return parent
        return _own[key]


def remove_left_over(parent: Path) -> int:
    """Remove the directories that no process has locked, and return their number."""
    removed = sum(_remove(path) for path in parent.glob(f"{_PREFIX}*"))
    if removed:
        logger.info("removed spill directories of dead processes", extra={"folders": removed})
    return removed


def _made(parent: Path) -> Path:
    while True:
        path = parent / f"{_PREFIX}{uuid.uuid4().hex}"
        path.mkdir()
        # Never closed: the lock must last as long as the process.
        descriptor = os.open(path, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Another process may have removed it as left over before it was locked.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return path
        os.close(descriptor)


def _remove(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False  # Another process removed it first, or another user owns it.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
