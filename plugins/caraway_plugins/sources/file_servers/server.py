"""The interface of file servers, and the addresses of their files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.storage import FoundFile

MOST_FOLDERS = 32
"""A path with more folders is one of links that lead in a circle."""
_ADDRESS = re.compile(
    r"(?://)?(?:(?P<user>[^/@]*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^/@:\[\]]+)(?::(?P<port>\d{1,5}))?"
    r"(?:/(?P<path>.*))?",
    re.DOTALL,
)


class FileServer(Protocol):
    """A connection to a server. All methods raise DatasetError with messages for users."""

    def absolute(self, path: str) -> str:
        """Return the path of an address as the absolute path that the other methods take."""
        ...

    def listing(self, folder: str) -> Iterator[FoundFile]:
        """Return all files below a folder, which ends in `/`."""
        ...

    def find(self, path: str) -> FoundFile | None:
        """Return one file, or None if it does not exist."""
        ...

    def download(self, path: str, target: BinaryIO) -> None: ...

    def title(self, path: str) -> str:
        """Return the path as the user writes it, for messages."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FileServerAddress:
    """A server and a path on it, which may be a pattern."""

    scheme: str
    host: str
    port: int
    user: str
    path: str

    @property
    def place(self) -> str:
        """The server, as a part of addresses."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse(request: SourceRequest, params: Params, port: int) -> FileServerAddress:
    """Parse the address of a dataset.

    Raises:
        DatasetError: it has another form, a password, or a path that leaves its folder.
    """
    kind = request.connector
    parts = _ADDRESS.fullmatch(request.path)
    if parts is None:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': write the address as {kind}://host/path/of/the/files",
        )
    user, path = parts["user"] or "", parts["path"] or ""
    if ":" in user:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': the address has a password, which everyone sees; set "
            f"params.{kind}_pass to a secret",
        )
    if ".." in path.split("/"):
        raise DatasetError("invalid", f"the path '{path}' has '..'; write the path without it")
    check_name(path)
    return FileServerAddress(
        kind,
        parts["host"].strip("[]"),
        int(parts["port"] or 0) or params.count(f"{kind}_port") or port,
        user or params.text(f"{kind}_user") or "",
        path,
    )


def check_name(name: str) -> None:
    """Refuse names that would be more than one line of a command.

    Raises:
        DatasetError: the name has the end of a line, or a NUL.
    """
    if re.search(r"[\r\n\0]", name):
        raise DatasetError("invalid", f"the name {name!r} cannot be read from a file server")


def is_child(name: str) -> bool:
    """Return whether a name that a server lists is that of something in the folder."""
    return bool(name) and name not in (".", "..") and "/" not in name


def check_depth(folder: str, title: str) -> None:
    """Refuse folders that links repeat.

    Raises:
        DatasetError: the path has too many folders.
    """
    if folder.count("/") > MOST_FOLDERS:
        raise DatasetError(
            "invalid",
            f"'{title}' has more than {MOST_FOLDERS} folders; a link may lead in a circle",
        )
