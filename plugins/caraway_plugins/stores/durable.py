"""Creates files atomically and durably: after a crash they exist completely or not at all."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_MOST_REMEMBERED = 1000


class UnfinishedFiles:
    """A folder for unfinished files and discarded folders, on the file system of the results.

    The writer of an unfinished file holds a lock on it, which the kernel releases when the process
    dies. A file without a lock is therefore an orphan, even if several processes share the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[Path, int] = {}

    def open(self) -> int:
        """Create the folder, remove files of dead processes, and return their number."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return sum(_remove_orphan(path) for path in list(self._folder.iterdir()))

    @contextmanager
    def unfinished(self) -> Iterator[BinaryIO]:
        """Yield a new locked file, and remove it afterwards unless it was published."""
        with self._locked() as handle:
            try:
                yield handle
            finally:
                Path(handle.name).unlink(missing_ok=True)

    def try_out(self) -> None:
        """Write and sync a small file and remove it, to test that writing works."""
        with self.unfinished() as handle:
            handle.write(b"a little")
            handle.flush()
            os.fsync(handle.fileno())

    def publish(self, handle: BinaryIO, target: Path) -> None:
        """Sync an unfinished file and rename it to its target.

        The file becomes visible only when it is complete.
        """
        handle.flush()
        os.fsync(handle.fileno())
        target.parent.mkdir(exist_ok=True)
        os.rename(handle.name, target)
        sync_folder(target.parent)
        self._keep(target.parent)

    def discard(self, folder: Path) -> None:
        """Remove a folder and its files atomically, if it exists."""
        doomed = self._folder / uuid.uuid4().hex
        with suppress(FileNotFoundError):
            folder.rename(doomed)
            sync_folder(folder.parent)
        shutil.rmtree(doomed, ignore_errors=True)

    def _locked(self) -> BinaryIO:
        while True:
            handle = open(self._folder / uuid.uuid4().hex, "xb")
            fcntl.flock(handle, fcntl.LOCK_EX)
            # A starting process may have removed it as an orphan before it was locked.
            if os.fstat(handle.fileno()).st_nlink:
                return handle
            handle.close()

    def _keep(self, folder: Path) -> None:
        """Make the name of a folder durable, once per folder and again if it is recreated."""
        number = folder.stat().st_ino
        if self._kept.get(folder) != number:
            sync_folder(folder.parent)
            if len(self._kept) >= _MOST_REMEMBERED:
                self._kept.clear()
            self._kept[folder] = number


def sync_folder(folder: Path) -> None:
    """Sync a folder; syncing a file does not make its name durable."""
    with _descriptor(folder) as descriptor:
        os.fsync(descriptor)


def _remove_orphan(path: Path) -> bool:
    remove: Callable[[Path], None] = shutil.rmtree if path.is_dir() else Path.unlink
    # Another process that starts now may have removed it, or the file may have been published.
    with suppress(FileNotFoundError), _descriptor(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        remove(path)
        return True
    return False


@contextmanager
def _descriptor(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
