"""Datasets that are files on a server: what FTP and SFTP have in common."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceCapabilities, SourceRequest
from caraway_core.tables import TableSpec
from caraway_plugins.sources import files, params
from caraway_plugins.sources.file_servers.copies import CopiedFiles
from caraway_plugins.sources.file_servers.server import FileServer, FileServerAddress, parse
from caraway_plugins.sources.params import Params

_TIMEOUT_S = 30.0


class FileServerSource(ABC):
    """A file, a folder or a glob pattern on a server; statements read copies in the cache."""

    capabilities = SourceCapabilities(projection=True, filters=True, limit=True, splits=True)
    port: int

    def resolve(self, request: SourceRequest) -> TableSpec:
        values = params.checked(request.connector, request.params)
        with self._connected(request, values) as (copies, path):
            table = files.read(copies, path, values, request)
            if table.is_external:
                # Executors on other hosts get copies of files that the engine reads.
                raise DatasetError(
                    "unsupported",
                    f"'{copies.title(path)}': documents and ORC files are read from disks and "
                    "object stores; copy it there",
                )
            copies.forget()
        return table

    def fingerprint(self, request: SourceRequest) -> str | None:
        values = params.checked(request.connector, request.params)
        with self._connected(request, values) as (copies, path):
            return files.look(copies, path, values, request).fingerprint()

    @abstractmethod
    def connect(
        self, address: FileServerAddress, request: SourceRequest, values: Params, timeout_s: float
    ) -> FileServer:
        """Open a connection to the server of a dataset."""

    @contextmanager
    def _connected(
        self, request: SourceRequest, values: Params
    ) -> Iterator[tuple[CopiedFiles, str]]:
        address = parse(request, values, self.port)
        timeout_s = values.seconds("client_timeout", _TIMEOUT_S)
        # Datasets with one address may load concurrently.
        named = replace(address, path=f"{request.name}\0{address.path}")
        place = hashlib.sha256(repr(named).encode()).hexdigest()[:32]
        with closing(self.connect(address, request, values, timeout_s)) as server:
            folder = request.cache_dir / request.connector / place
            yield CopiedFiles(server, folder), server.absolute(address.path)
