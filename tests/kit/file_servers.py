"""FTP and SFTP servers over a folder, each in a thread, that can fail in the middle of a file."""

import asyncio
import functools
import socket
import threading
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

with warnings.catch_warnings():  # It is built on modules that Python 3.12 left out.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.filesystems import AbstractedFS
    from pyftpdlib.handlers import FTPHandler, TLS_FTPHandler
    from pyftpdlib.ioloop import IOLoop
    from pyftpdlib.servers import FTPServer

USER = "reader"
PASSWORD = "hunter2"
_WAIT_S = 60


@dataclass(slots=True)
class ServedFolder:
    """A server of the files of a folder.

    `ends_after` are the bytes of a file after which the server breaks the connection, and
    `cuts_after` those after which it says that the file ends. `commands` are those that arrived,
    and `logins` the users who tried to log in. `also_lists` are names that are listed and do not
    exist.
    """

    folder: Path
    port: int = 0
    fingerprint: str = ""
    certificate: Path | None = None
    ends_after: int | None = None
    cuts_after: int | None = None
    commands: list[str] = field(default_factory=list)
    host_key: Any = None
    logins: list[str] = field(default_factory=list)
    connections: list[Any] = field(default_factory=list, repr=False)
    also_lists: Sequence[str] = ()
    is_denied: bool = False

    @property
    def address(self) -> str:
        return f"//127.0.0.1:{self.port}"

    @property
    def ftp_login(self) -> Mapping[str, str]:
        return {"ftp_user": USER, "ftp_pass": PASSWORD}

    @property
    def sftp_login(self) -> Mapping[str, str]:
        return {
            "sftp_user": USER,
            "sftp_pass": PASSWORD,
            "sftp_host_key": self.fingerprint,
        }


class _Cut:
    """A file of an FTP server that ends early, with its connection or without."""

    def __init__(self, file: Any, served: ServedFolder, handler: Any) -> None:
        self._file, self._served, self._handler = file, served, handler
        self._sent = 0
        self.name, self.closed = file.name, False

    def read(self, size: int) -> bytes:
        served = self._served
        limit = served.cuts_after if served.ends_after is None else served.ends_after
        left = size if limit is None else min(size, limit - self._sent)
        if left <= 0 and served.ends_after is not None:
            self._handler.close()
        content: bytes = self._file.read(max(0, left))
        self._sent += len(content)
        return content

    def close(self) -> None:
        self._file.close()
        self.closed = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def ftp(
    folder: Path,
    *,
    has_facts: bool = True,
    certificate: tuple[Path, Path] | None = None,
    names_in: str = "utf-8",
) -> Iterator[ServedFolder]:
    """Serve a folder over FTP; with a certificate and its key, only over TLS."""
    served = ServedFolder(folder)

    class Files(AbstractedFS):  # type: ignore[misc] # untyped
        def open(self, filename: str, mode: str) -> Any:
            return _Cut(super().open(filename, mode), served, self.cmd_channel)

    class Handler(TLS_FTPHandler if certificate else FTPHandler):  # type: ignore[misc] # chosen
        abstracted_fs = Files
        authorizer = DummyAuthorizer()
        use_sendfile = False
        auth_failed_timeout = 0
        encoding = names_in

        def pre_process_command(self, line: str, cmd: str, arg: str) -> None:
            served.commands.append(f"{cmd} {arg}".strip())
            super().pre_process_command(line, cmd, arg)

    Handler.authorizer.add_user(USER, PASSWORD, str(folder), perm="elr")
    if not has_facts:
        left = {k: v for k, v in Handler.proto_cmds.items() if k not in ("MLSD", "MLST", "OPTS")}
        Handler.proto_cmds = left
    if certificate:
        Handler.certfile, Handler.keyfile = map(str, certificate)
        Handler.tls_control_required = Handler.tls_data_required = True
        served.certificate = certificate[0]
    loop = IOLoop()
    server = FTPServer(("127.0.0.1", 0), Handler, ioloop=loop)
    served.port = server.address[1]
    is_ended = threading.Event()

    def run() -> None:
        while not is_ended.is_set():
            loop.loop(timeout=0.05, blocking=False)
        server.close_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        is_ended.set()
        thread.join(_WAIT_S)


class _Files(asyncssh.SFTPServer):
    def __init__(self, served: ServedFolder, channel: Any) -> None:
        super().__init__(channel, chroot=str(served.folder).encode())
        self._served = served
        self._connection = channel.get_connection()

    async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        async for each in super().scandir(path):
            yield each
        for name in self._served.also_lists:
            yield asyncssh.SFTPName(
                name.encode(), attrs=asyncssh.SFTPAttrs(permissions=0o100644, size=5)
            )

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        if self._served.is_denied:
            raise asyncssh.SFTPPermissionDenied("denied")
        return super().open(path, pflags, attrs)

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        served = self._served
        if served.ends_after is not None and offset + size > served.ends_after:
            self._connection.abort()
        if served.cuts_after is not None:
            size = min(size, max(0, served.cuts_after - offset))
        content = super().read(file_obj, offset, size) if size else b""
        if asyncio.iscoroutine(content):
            content = await content
        assert isinstance(content, bytes)
        return content


class _Login(asyncssh.SSHServer):
    def __init__(self, served: ServedFolder, key: asyncssh.SSHKey | None) -> None:
        self._served, self._key = served, key

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._served.connections.append(conn)

    def begin_auth(self, username: str) -> bool:
        self._served.logins.append(username)
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (USER, PASSWORD)

    def public_key_auth_supported(self) -> bool:
        return self._key is not None

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == USER and key.public_data == getattr(self._key, "public_data", None)


@contextmanager
def sftp(folder: Path, *, user_key: asyncssh.SSHKey | None = None) -> Iterator[ServedFolder]:
    """Serve a folder over SFTP; a user key is accepted in place of the password."""
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    served = ServedFolder(folder, fingerprint=host_key.get_fingerprint(), host_key=host_key)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen() -> asyncssh.SSHAcceptor:
        return await asyncssh.create_server(
            lambda: _Login(served, user_key),
            "127.0.0.1",
            0,
            server_host_keys=[host_key],
            sftp_factory=functools.partial(_Files, served),
        )

    async def end(acceptor: asyncssh.SSHAcceptor) -> None:
        acceptor.close()
        for each in served.connections:
            each.abort()
            await each.wait_closed()
        await acceptor.wait_closed()

    acceptor = asyncio.run_coroutine_threadsafe(listen(), loop).result(_WAIT_S)
    served.port = acceptor.get_port()
    try:
        yield served
    finally:
        asyncio.run_coroutine_threadsafe(end(acceptor), loop).result(_WAIT_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_WAIT_S)
        loop.close()


@contextmanager
def silent() -> Iterator[int]:
    """Listen at a port without a word; returns the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]
