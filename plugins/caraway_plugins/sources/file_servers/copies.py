"""Copies of the files of a server, in the cache folder; each is downloaded when it is needed."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from caraway_core.errors import DatasetError
from caraway_core.tables import StoreSpec
from caraway_plugins.sources import cached_files
from caraway_plugins.sources.disk import Disk
from caraway_plugins.sources.file_servers.server import FileServer
from caraway_plugins.sources.storage import FoundFile

_CURRENT = "current.json"
_MOST_NAME_BYTES = 100


class CopiedFiles:
    """Implements `Storage` for the files of a server.

    A copy has the name of one version of a file, so it never changes. One is downloaded at a time.
    """

    store: StoreSpec | None = None
    has_folders = False

    def __init__(self, server: FileServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._listed: dict[str, FoundFile] = {}
        self._names: set[str] = set()
        self._lock = threading.Lock()
        self._disk = Disk()

    def listing(self, folder: str) -> Iterator[FoundFile]:
        for each in self._server.listing(folder):
            self._listed[each.path] = each
            yield each

    def find(self, path: str) -> FoundFile | None:
        file = self._server.find(path)
        if file is not None:
            self._listed[path] = file
        return file

    def read(self, path: str, start: int, end: int) -> bytes:
        return self._disk.read(self.location(path), start, end)

    def location(self, path: str) -> str:
        """Return the path of the copy, which exists then."""
        file = self._listed[path]
        copy = self._folder / _name(file)
        with self._lock:
            self._names.add(copy.name)
            if not copy.exists():
                try:
                    self._folder.mkdir(parents=True, exist_ok=True)
                    cached_files.write(copy, lambda target: self._download(file, target))
                except OSError as exc:
                    raise DatasetError(
                        "unavailable", f"'{self.title(path)}' cannot be cached: {exc.strerror}"
                    ) from exc
        return str(copy)

    def title(self, path: str) -> str:
        return self._server.title(path)

    def forget(self) -> None:
        """Remove copies that neither this table nor the one before it has.

        Statements that run may still read those of the table before.
        """
        current = self._folder / _CURRENT
        try:
            before = set(json.loads(current.read_text()))
        except (OSError, ValueError, TypeError):
            before = set()
        names = json.dumps(sorted(self._names)).encode()
        try:
            cached_files.write(current, lambda target: target.writelines([names]))
            cached_files.keep_only(self._folder, {*self._names, *before, _CURRENT})
        except OSError as exc:
            raise DatasetError(
                "unavailable", f"files of a server cannot be cached: {exc.strerror}"
            ) from exc

    def _download(self, file: FoundFile, target: BinaryIO) -> None:
        self._server.download(file.path, target)
        if target.tell() != file.size_bytes:
            raise DatasetError(
                "unavailable",
                f"'{self.title(file.path)}' has {target.tell()} bytes and was listed with "
                f"{file.size_bytes}; it changed while it was read, and is read again later",
            )


def _name(file: FoundFile) -> str:
    """Return the name of a copy: it ends as the name of the file, which tells the format."""
    version = f"{file.path}\0{file.size_bytes}\0{file.stamp}"
    own = re.sub(r"[/\0]", "_", file.path.rpartition("/")[2])
    ending = own.encode()[-_MOST_NAME_BYTES:].decode(errors="ignore")
    return f"{hashlib.sha256(version.encode()).hexdigest()[:32]}-{ending}"
