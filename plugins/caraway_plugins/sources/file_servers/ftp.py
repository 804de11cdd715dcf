"""Lists and downloads files of FTP servers, with or without TLS. Transfers are passive."""

import ftplib
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import BinaryIO, TypeVar

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.file_servers import server
from caraway_plugins.sources.file_servers.server import FileServer, FileServerAddress
from caraway_plugins.sources.file_servers.source import FileServerSource
from caraway_plugins.sources.params import Params
from caraway_plugins.sources.storage import FoundFile

_Answer = TypeVar("_Answer")
_BLOCK_BYTES = 256 * 1024
_FACTS = "type;size;modify;unique;"
_MOMENT = re.compile(r"(\d{14})(\.\d+)?")
_DENIED = ("530", "532")
_ABSENT = "550"
_NOT_SUPPORTED = ("500", "501", "502", "504")


class _Encrypted(ftplib.FTP_TLS):
    """Resumes the session of TLS for each transfer, as many servers require."""

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[ssl.SSLSocket, int]:
        connection, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        session = self.sock.session if isinstance(self.sock, ssl.SSLSocket) else None
        wrapped = self.context.wrap_socket(connection, server_hostname=self.host, session=session)
        return wrapped, size or 0


class FtpFiles(FileServerSource):
    """Files of an FTP server."""

    port = 21

    def connect(
        self, address: FileServerAddress, request: SourceRequest, values: Params, timeout_s: float
    ) -> FileServer:
        if values.flag("ftp_tls", False):
            ftp: ftplib.FTP = _Encrypted(timeout=timeout_s, context=_context(request, values))
        else:
            ftp = ftplib.FTP(timeout=timeout_s)
        return FtpServer(address, ftp, values.text("ftp_pass") or "")


class FtpServer:
    """Implements `FileServer`. The connection is open until `close`."""

    def __init__(self, address: FileServerAddress, ftp: ftplib.FTP, password: str) -> None:
        self._address = address
        self._ftp = ftp
        self._home = "/"
        try:
            self._asked("", lambda: self._log_in(password))
            self._home = self._asked("", ftp.pwd)
            self._has_facts = self._lists_facts()
        except DatasetError:
            ftp.close()
            raise

    def absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._home.rstrip('/')}/{path}"

    def listing(self, folder: str) -> Iterator[FoundFile]:
        seen = {(self._facts(folder) or {}).get("unique", folder)}
        folders = [folder]
        while folders:
            below = folders.pop()
            server.check_depth(below, self.title(folder))
            for name, facts in self._entries(below):
                path = below + name
                match facts.get("type", "").lower():
                    case "dir":
                        unique = facts.get("unique", path)
                        if unique not in seen:
                            folders.append(f"{path}/")
                        seen.add(unique)
                    case "file":
                        yield _described(path, facts)

    def find(self, path: str) -> FoundFile | None:
        facts = self._facts(path)
        is_file = facts is not None and facts.get("type", "").lower() == "file"
        return _described(path, facts) if facts and is_file else None

    def download(self, path: str, target: BinaryIO) -> None:
        def transfer() -> None:
            self._ftp.retrbinary(f"RETR {path}", target.write, _BLOCK_BYTES)

        self._asked(path, transfer)

    def title(self, path: str) -> str:
        home = f"{self._home.rstrip('/')}/"
        shown = path.removeprefix(home) if path.startswith(home) else path
        return f"ftp://{self._address.place}/{shown}"

    def close(self) -> None:
        with suppress(OSError, EOFError, ftplib.Error):
            self._ftp.quit()
        self._ftp.close()

    def _log_in(self, password: str) -> None:
        self._ftp.connect(self._address.host, self._address.port)
        self._ftp.login(self._address.user, password)
        if isinstance(self._ftp, ftplib.FTP_TLS):
            self._ftp.prot_p()

    def _use_bytes(self) -> None:
        """Leave the mode for texts, in which lists arrive, and in which files have no sizes."""
        self._ftp.voidcmd("TYPE I")

    def _lists_facts(self) -> bool:
        if "MLST" not in (self._asked("", lambda: self._sent("FEAT")) or ""):
            return False
        self._asked("", lambda: self._sent(f"OPTS MLST {_FACTS}"))
        return True

    def _entries(self, folder: str) -> Iterator[tuple[str, dict[str, str]]]:
        # A folder in place of a path in the commands: servers differ in which paths they take.
        self._asked(folder, lambda: self._ftp.cwd(folder))
        if self._has_facts:
            listed = self._asked(folder, lambda: list(self._ftp.mlsd()))
            yield from ((name, facts) for name, facts in listed if server.is_child(name))
            return
        names = self._asked(folder, self._names)
        self._asked(folder, self._use_bytes)
        for name in filter(server.is_child, names):
            yield name, self._measured(folder + name) or {"type": "dir"}

    def _names(self) -> list[str]:
        """Return the names in the current folder; some servers answer 550 if it is empty."""
        try:
            return [name.rpartition("/")[2] for name in self._ftp.nlst()]
        except ftplib.error_perm as exc:
            if str(exc).startswith(_ABSENT):
                return []
            raise

    def _facts(self, path: str) -> dict[str, str] | None:
        """Return the facts of a file or a folder, or None: it is not there."""
        if not self._has_facts:
            self._asked(path, self._use_bytes)
            return self._measured(path)
        answer = self._asked(path, lambda: self._sent(f"MLST {path}"))
        if answer is None:
            return None
        facts = answer.splitlines()[1:2] or [""]
        pairs = (each.partition("=") for each in facts[0].strip().partition(" ")[0].split(";"))
        return {name.lower(): value for name, _, value in pairs}

    def _measured(self, path: str) -> dict[str, str] | None:
        """Return the size and the time of a file, or None: it is a folder, or not there."""
        size = self._asked(path, lambda: self._sent(f"SIZE {path}"))
        if size is None:
            return None
        modified = self._asked(path, lambda: self._sent(f"MDTM {path}")) or ""
        return {"type": "file", "size": size[4:].strip(), "modify": modified[4:].strip()}

    def _sent(self, command: str) -> str | None:
        """Return the answer to a command, or None: there is no such path, or no such command."""
        try:
            return self._ftp.sendcmd(command)
        except ftplib.error_perm as exc:
            if str(exc).startswith((_ABSENT, *_NOT_SUPPORTED)):
                return None
            raise

    def _asked(self, path: str, call: Callable[[], _Answer]) -> _Answer:
        try:
            return call()
        except (OSError, EOFError, ftplib.Error, UnicodeDecodeError) as exc:
            raise self._worded(path, exc) from exc

    def _worded(self, path: str, exc: Exception) -> DatasetError:
        where = self.title(path)
        code = str(exc)[:3] if isinstance(exc, ftplib.Error) else ""
        match exc:
            case ssl.SSLError():
                return DatasetError(
                    "unavailable",
                    f"'{where}': no connection with TLS; check the certificate of the server and "
                    "params.ftp_tls_root_certs",
                )
            case UnicodeDecodeError():
                return DatasetError(
                    "invalid", f"'{where}': a name is not UTF-8; rename the file at the server"
                )
            case ftplib.error_perm() if code in _DENIED:
                return DatasetError(
                    "auth",
                    f"'{where}': access is denied ({code}); check params.ftp_user and ftp_pass",
                )
            case ftplib.error_perm() if code == _ABSENT:
                return DatasetError(
                    "not_found", f"'{where}' does not exist, or cannot be read by the user ({code})"
                )
        said = f" ({code})" if code.isdigit() else ""
        return DatasetError(
            "unavailable",
            f"'{where}' cannot be read{said}; check the address, the network and the server",
        )


def _described(path: str, facts: dict[str, str]) -> FoundFile:
    moment = _MOMENT.fullmatch(facts.get("modify", ""))
    modified_s = 0.0
    with suppress(ValueError):
        if moment:
            modified = datetime.strptime(moment[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
            modified_s = modified.timestamp()
    size = facts.get("size", "")
    stamp = f"{facts.get('modify', '')}-{facts.get('unique', '')}"
    return FoundFile(path, int(size) if size.isdigit() else 0, stamp, modified_s)


def _context(request: SourceRequest, params: Params) -> ssl.SSLContext:
    file = params.text("ftp_tls_root_certs")
    path = str(request.base_dir / file) if file else None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as exc:
        raise DatasetError(
            "invalid",
            f"dataset '{request.name}': the file of params.ftp_tls_root_certs cannot be read, or "
            "holds no certificates",
        ) from exc
