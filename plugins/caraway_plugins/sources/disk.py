"""Lists, reads and writes files on a local disk."""

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from caraway_core.errors import DatasetError
from caraway_core.tables import StoreSpec
from caraway_plugins.sources.storage import FoundFile
from caraway_plugins.stores import durable

_COPIED_BYTES = 1024 * 1024


class Disk:
    """Implements `WritableStorage` for local paths."""

    store: StoreSpec | None = None
    has_folders = True

    def listing(self, folder: str) -> Iterator[FoundFile]:
        seen: set[str] = set()
        for parent, folders, names in os.walk(folder, onerror=_refuse, followlinks=True):
            real = os.path.realpath(parent)
            if real in seen:  # a link to a parent folder would be an endless loop
                folders.clear()
                continue
            seen.add(real)
            for name in names:
                file = self.find(os.path.join(parent, name))
                if file is not None:
                    yield file

    def folders(self, folder: str) -> Sequence[str]:
        try:
            with os.scandir(folder) as entries:
                return [each.name for each in entries if each.is_dir()]
        except OSError as exc:
            raise _worded(folder, exc) from exc

    def find(self, path: str) -> FoundFile | None:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                return None  # A link to itself leads nowhere, as one to a missing file.
            raise _worded(path, exc) from exc
        if not stat.S_ISREG(status.st_mode):
            return None
        stamp = f"{status.st_mtime_ns}-{status.st_ino}"
        return FoundFile(path, status.st_size, stamp, status.st_mtime)

    def read(self, path: str, start: int, end: int) -> bytes:
        try:
            with open(path, "rb") as stream:
                stream.seek(start)
                return stream.read(end - start)
        except OSError as exc:
            raise _worded(path, exc) from exc

    def write(self, path: str, content: BinaryIO) -> None:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as stream:
                shutil.copyfileobj(content, stream, _COPIED_BYTES)
                stream.flush()
                os.fsync(stream.fileno())
            # The folder may be new, too.
            for folder in islice(Path(path).parents, 2):
                durable.sync_folder(folder)
        except OSError as exc:
            raise _worded(path, exc, "written") from exc

    def delete(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise _worded(path, exc, "deleted") from exc

    def location(self, path: str) -> str:
        return path

    def title(self, path: str) -> str:
        return path


def _refuse(exc: OSError) -> None:
    raise _worded(str(exc.filename), exc) from exc


def _worded(path: str, exc: OSError, done: str = "read") -> DatasetError:
    path = path.rstrip("/") or "/"
    match exc:
        case FileNotFoundError() | NotADirectoryError():
            return DatasetError("not_found", f"'{path}' does not exist; check the path in `from`")
        case PermissionError():
            return DatasetError("auth", f"'{path}' cannot be {done}; check its permissions")
        case _:
            return DatasetError("unavailable", f"'{path}' cannot be {done}: {exc.strerror}")
