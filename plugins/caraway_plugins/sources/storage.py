"""The interface for listing and reading files, common to local disks and object stores."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from caraway_core.tables import StoreSpec


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file: `path` is absolute on a disk, and a key in a bucket; `stamp` changes with it."""

    path: str
    size_bytes: int
    stamp: str
    modified_s: float = field(default=0.0, compare=False)
    """When it was written, in seconds since 1970."""


class Storage(Protocol):
    """A disk or a bucket. All methods raise DatasetError with messages for users."""

    @property
    def store(self) -> StoreSpec | None: ...

    @property
    def has_folders(self) -> bool:
        """Return whether the engine can list the folders of it."""
        ...

    def listing(self, folder: str) -> Iterator[FoundFile]:
        """Return all files below a folder; `folder` is empty or ends in `/`."""
        ...

    def find(self, path: str) -> FoundFile | None:
        """Return one file, or None if it does not exist."""
        ...

    def read(self, path: str, start: int, end: int) -> bytes: ...

    def location(self, path: str) -> str:
        """Return the path in the form that a FileScan needs."""
        ...

    def title(self, path: str) -> str:
        """Return the path as the user writes it, for messages."""
        ...


class WritableStorage(Storage, Protocol):
    """A disk or a bucket in which files can be made."""

    def folders(self, folder: str) -> Sequence[str]:
        """Return the names of the folders in a folder, in any order."""
        ...

    def write(self, path: str, content: BinaryIO) -> None:
        """Make a file. It is there as a whole when this returns."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        ...


class RangeFile(io.RawIOBase):
    """A seekable file over ranged reads of a storage; wrap it in a BufferedReader."""

    def __init__(self, storage: Storage, found: FoundFile) -> None:
        super().__init__()
        self._storage = storage
        self._found = found
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._found.size_bytes}
        self._position = max(0, base[whence] + offset)
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # io asks for any buffer
        end = min(self._position + len(buffer), self._found.size_bytes)
        if end <= self._position:
            return 0
        chunk = self._storage.read(self._found.path, self._position, end)
        buffer[: len(chunk)] = chunk
        self._position += len(chunk)
        return len(chunk)


def opened(storage: Storage, found: FoundFile) -> io.BufferedReader:
    """Open a file for buffered, seekable reading."""
    return io.BufferedReader(RangeFile(storage, found), buffer_size=64 * 1024)
