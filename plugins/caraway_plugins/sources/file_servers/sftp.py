"""Lists and downloads files of SFTP servers, whose host keys are verified."""

import errno
import logging
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO, TypeVar

import paramiko

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.file_servers import server, ssh_keys
from caraway_plugins.sources.file_servers.server import FileServer, FileServerAddress
from caraway_plugins.sources.file_servers.source import FileServerSource
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.storage import FoundFile

_Answer = TypeVar("_Answer")
_REQUESTS = 64
"""How many parts of a file are requested ahead."""
_HOME = "~/"
_LOG = "caraway.sftp"


class SftpFiles(FileServerSource):
    """Files of an SFTP server."""

    port = 22

    def connect(
        self, address: FileServerAddress, request: SourceRequest, values: Params, timeout_s: float
    ) -> FileServer:
        return SftpServer(address, request, values, timeout_s)


class SftpServer:
    """Implements `FileServer`. The connection is open until `close`."""

    def __init__(
        self, address: FileServerAddress, request: SourceRequest, params: Params, timeout_s: float
    ) -> None:
        self._address = address
        self._ssh = paramiko.SSHClient()
        # Its messages have stack traces; what failed is in the error of the dataset.
        logging.getLogger(_LOG).disabled = True
        self._ssh.set_log_channel(_LOG)
        ssh_keys.prepare(self._ssh, request, params, self.title(""))
        key = ssh_keys.private_key(request, params)
        try:
            self._asked("", lambda: self._log_in(params, key, timeout_s))
            self._sftp = self._asked("", self._ssh.open_sftp)
        except DatasetError:
            self._ssh.close()
            raise
        if channel := self._sftp.get_channel():
            channel.settimeout(timeout_s)

    def absolute(self, path: str) -> str:
        if not path.startswith(_HOME):
            return f"/{path.lstrip('/')}"
        home = self._asked("", lambda: self._sftp.normalize("."))
        return f"{home.rstrip('/')}/{path.removeprefix(_HOME)}"

    def listing(self, folder: str) -> Iterator[FoundFile]:
        seen = {self._place(folder)}
        folders = [folder]
        while folders:
            below = folders.pop()
            server.check_depth(below, self.title(folder))
            for entry in self._entries(below):
                path = below + entry.filename
                status = self._status(path, entry)
                if status is None:
                    continue
                if stat.S_ISREG(status.st_mode or 0):
                    yield _described(path, status)
                elif stat.S_ISDIR(status.st_mode or 0):
                    place = path
                    if stat.S_ISLNK(entry.st_mode or 0):
                        place = self._place(path)
                    if place not in seen:
                        folders.append(f"{path}/")
                    seen.add(place)

    def find(self, path: str) -> FoundFile | None:
        status = self._found(path)
        is_file = status is not None and stat.S_ISREG(status.st_mode or 0)
        return _described(path, status) if status and is_file else None

    def download(self, path: str, target: BinaryIO) -> None:
        self._asked(
            path,
            lambda: self._sftp.getfo(path, target, max_concurrent_prefetch_requests=_REQUESTS),
        )

    def title(self, path: str) -> str:
        return f"sftp://{self._address.place}{path}"

    def close(self) -> None:
        with suppress(OSError, EOFError, paramiko.SSHException):
            self._ssh.close()

    def _log_in(self, params: Params, key: paramiko.PKey | None, timeout_s: float) -> None:
        self._ssh.connect(
            self._address.host,
            self._address.port,
            self._address.user,
            params.text("sftp_pass"),
            key,
            timeout=timeout_s,
            banner_timeout=timeout_s,
            auth_timeout=timeout_s,
            channel_timeout=timeout_s,
            allow_agent=False,
            look_for_keys=False,
        )

    def _entries(self, folder: str) -> list[paramiko.SFTPAttributes]:
        entries = self._asked(folder, lambda: self._sftp.listdir_attr(folder))
        for each in entries:
            server.check_name(each.filename)
        return [each for each in entries if server.is_child(each.filename)]

    def _status(self, path: str, entry: paramiko.SFTPAttributes) -> paramiko.SFTPAttributes | None:
        """Return what an entry is, or what it links to; None for a link that leads nowhere."""
        is_whole = entry.st_mode is not None and entry.st_size is not None
        return entry if is_whole and not stat.S_ISLNK(entry.st_mode or 0) else self._found(path)

    def _found(self, path: str) -> paramiko.SFTPAttributes | None:
        def ask() -> paramiko.SFTPAttributes | None:
            try:
                return self._sftp.stat(path)
            except OSError as exc:
                if exc.errno == errno.ENOENT:
                    return None
                raise

        return self._asked(path, ask)

    def _place(self, path: str) -> str:
        return self._asked(path, lambda: self._sftp.normalize(path))

    def _asked(self, path: str, call: Callable[[], _Answer]) -> _Answer:
        try:
            return call()
        except (OSError, EOFError, paramiko.SSHException, UnicodeDecodeError) as exc:
            raise self._worded(path, exc) from exc

    def _worded(self, path: str, exc: Exception) -> DatasetError:
        where = self.title(path)
        match exc:
            case ssh_keys.UnknownHostKeyError() | paramiko.BadHostKeyException():
                return DatasetError("auth", ssh_keys.refusal(where, exc))
            case paramiko.AuthenticationException():
                return DatasetError(
                    "auth",
                    f"'{where}': the login is refused; check params.sftp_user, and sftp_pass or "
                    "sftp_private_key",
                )
            case OSError(errno=errno.ENOENT):
                return DatasetError("not_found", f"'{where}' does not exist; check the path")
            case OSError(errno=errno.EACCES):
                return DatasetError(
                    "auth", f"'{where}' cannot be read by the user; check its permissions"
                )
            case UnicodeDecodeError():
                return DatasetError(
                    "invalid", f"'{where}': a name is not UTF-8; rename the file at the server"
                )
        return DatasetError(
            "unavailable",
            f"'{where}' cannot be read; check the address, the network and the server",
        )


def _described(path: str, status: paramiko.SFTPAttributes) -> FoundFile:
    modified_s = float(status.st_mtime or 0)
    return FoundFile(path, status.st_size or 0, str(status.st_mtime), modified_s)
