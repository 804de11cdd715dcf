"""Folders for rows that do not fit in memory: one for each process, gone with it.

A process holds the lock of its folder, and the kernel frees the lock of a process that dies. So a
folder without a lock is left over, whatever process has its number by now, and a folder of a
process that lives is never removed.
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
    """Return the folder of this process below `parent`; those of dead processes are removed.

    Where none can be made, as on a full disk, it is `parent` itself: few statements need it.
    """
    key = os.getpid(), parent
    with _making:
        if key not in _own:
            try:
                parent.mkdir(parents=True, exist_ok=True)
                remove_left_over(parent)
                _own[key] = _made(parent)
            except OSError as exc:
                logger.warning("no folder for spilled rows", extra={"cause": exc.strerror})
                return parent
        return _own[key]


def remove_left_over(parent: Path) -> int:
    """Remove the folders that no process holds any more, and count them."""
    removed = sum(_remove(path) for path in parent.glob(f"{_PREFIX}*"))
    if removed:
        logger.info("spilled rows of dead processes removed", extra={"folders": removed})
    return removed


def _made(parent: Path) -> Path:
    while True:
        path = parent / f"{_PREFIX}{uuid.uuid4().hex}"
        path.mkdir()
        # Never closed: the lock is to last as long as the process.
        descriptor = os.open(path, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # A process that starts may have taken it for left over before it was locked.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return path
        os.close(descriptor)


def _remove(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False  # Another process removed it first, or it is of another user.
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
