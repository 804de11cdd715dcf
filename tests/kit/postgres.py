"""A real PostgreSQL server for the tests that need one, behind a Unix socket."""

import atexit
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg2
import psycopg2.errors

from tests.kit.deadlines import until

_START_S = 90
_STOP_S = 60
# PostgreSQL refuses to run as root, but in containers tests often do.
_NOBODY = 65_534
SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "32",
    "max_wal_senders": "32",
    "listen_addresses": "",
    "autovacuum": "off",
    "fsync": "off",
    "shared_buffers": "32MB",
}


class Server:
    """A server with its own data folder, which can be killed and restarted."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.settings = {**SETTINGS, **settings}
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        _give_away(folder)
        subprocess.run(["cp", "-a", str(_new_data()), str(folder / "data")], check=True)

    @property
    def params(self) -> dict[str, str]:
        """The params with which a dataset connects to it."""
        return {
            "pg_host": str(self._folder),
            "pg_user": "postgres",
            "pg_db": "postgres",
            "pg_sslmode": "disable",
        }

    def start(self) -> None:
        settings = {**self.settings, "unix_socket_directories": str(self._folder)}
        flags = [f"-c{name}={value}" for name, value in settings.items()]
        with (self._folder / "log.txt").open("a") as log:
            self._process = subprocess.Popen(
                [program("postgres"), "-D", str(self._folder / "data"), *flags],
                stdout=log, stderr=log, start_new_session=True, **_identity(),
            )  # fmt: skip
        until(self._answers, "PostgreSQL answers", _START_S)

    def kill(self) -> None:
        """Kill it, as a power failure does."""
        # SIGQUIT also ends its children, unlike SIGKILL.
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def execute(self, *statements: str) -> None:
        """Execute statements, each in its own transaction."""
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        finally:
            connection.close()

    def transact(self, *statements: str) -> None:
        """Execute statements in one transaction."""
        self.execute(";".join(("BEGIN", *statements, "COMMIT")))

    def drop_slots(self) -> None:
        """Drop the replication slots, once the server has noticed that their readers are gone."""
        until(
            lambda: not self.rows("SELECT FROM pg_replication_slots WHERE active"),
            "no slot is in use",
        )
        self.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(query)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def connect(self) -> Any:
        connection = psycopg2.connect(host=str(self._folder), user="postgres", dbname="postgres")
        connection.autocommit = True
        return connection

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self._log()
        with suppress(psycopg2.OperationalError):
            self.connect().close()
            return True
        return False

    def _log(self) -> str:
        return (self._folder / "log.txt").read_text()[-2_000:]

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_STOP_S)
            self._process = None


@functools.cache
def _new_data() -> Path:
    """Make the data of a new server, once for all servers of this process."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    atexit.register(shutil.rmtree, folder)
    _give_away(folder)
    command = [program("initdb"), "-D", str(folder / "data"), "-U", "postgres", "-A", "trust",
               "-E", "UTF8", "--locale=C", "--no-sync"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, **_identity())
    return folder / "data"


def _give_away(folder: Path) -> None:
    """Let the user own the folder that runs the server, and others use its socket."""
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
    folder.chmod(0o755)


def _identity() -> dict[str, Any]:
    """Return the options of a process that may run PostgreSQL."""
    if os.geteuid() != 0:
        return {}
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}


def program(name: str) -> str:
    """Return the path of a program of PostgreSQL."""
    # Only the files of the package are used; its server runs as another user.
    import importlib.util

    found = importlib.util.find_spec("pgserver")
    assert found is not None and found.origin is not None
    return str(Path(found.origin).parent / "pginstall" / "bin" / name)


@contextmanager
def serving(**settings: str) -> Iterator[Server]:
    """Start a server that keeps a log for logical replication, unless the settings differ."""
    # A Unix socket path has at most 107 characters, which pytest's folders can exceed.
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        server = Server(folder, **settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
