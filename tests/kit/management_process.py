"""The real `caraway management` in a process of its own, with the runtimes that it starts."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import caraway
from tests.kit import deadlines
from tests.kit.processes import CARAWAY
from tests.kit.ray_cluster import Host

START_S = 240.0
_STOP_S = 60.0
_COMMAND_S = 300


@dataclass(slots=True)
class Served:
    """A running service."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def kill(self) -> None:
        """End it as a power failure does. Its runtimes go on."""
        self.process.kill()
        self.process.wait(_STOP_S)


@dataclass(slots=True)
class Laptop:
    """A data directory, and the processes that were started with it."""

    home: Path
    database: str | None = None
    """A URL; the embedded database without one."""
    environ: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    services: int = 0
    host: Host = field(default_factory=Host)
    """The release whose commands and services run from now on."""

    @property
    def data(self) -> Path:
        return self.home / "management"

    @property
    def _flags(self) -> list[str]:
        chosen = ["--database", self.database] if self.database else []
        keys = ["--key-file", str(self.home / "keys")] if self.database else []
        return ["--data-dir", str(self.data), *chosen, *keys]

    def run(self, *words: str, stdin: str = "", folder: Path | None = None) -> str:
        """Run a command to its end, as a user does who is signed in; return its output."""
        done = subprocess.run(
            [CARAWAY, *words], input=stdin, cwd=folder or self.home, env=self._environ(),
            capture_output=True, text=True, timeout=_COMMAND_S,
        )  # fmt: skip
        assert done.returncode == 0, f"caraway {' '.join(words)}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def initialize(self, org: str) -> None:
        """Make the first organization and its owner."""
        printed = self.run("management", "init", *self._flags, "--org", org)
        self.token = json.loads(printed)["token"]

    @contextlib.contextmanager
    def serving(self, *more: str) -> Iterator[Served]:
        """Run the service until the block ends."""
        self.services += 1
        log = self.home / f"service-{self.services}.log"
        reader, writer = os.pipe()
        with log.open("w") as out:
            process = subprocess.Popen(
                [CARAWAY, "management", *self._flags, "--http", "127.0.0.1:0",
                 "--ready-fd", str(writer), *more],
                pass_fds=(writer,), stdout=out, stderr=out, env=self._environ(), cwd=self.home,
            )  # fmt: skip
        os.close(writer)
        try:
            with os.fdopen(reader) as pipe:
                line = pipe.readline()
            assert line, log.read_text()
            yield Served(process, f"http://{json.loads(line)['http']}", log)
        finally:
            if process.poll() is None:
                process.terminate()
                assert process.wait(_STOP_S) == 0, log.read_text()

    def client(self, served: Served) -> caraway.Management:
        """Return the Python client with the token of the owner."""
        return caraway.Management(self.token, url=served.url)

    def runtimes(self) -> dict[int, list[int]]:
        """Return the processes of each project: those whose command lines name its folder."""
        lines = _command_lines()
        return {
            int(folder.name): [
                pid for pid, words in lines.items() if any(f"{folder}/" in word for word in words)
            ]
            for folder in self.data.glob("projects/[0-9]*")
        }

    def serving_processes(self, project_id: int) -> list[int]:
        """Return the processes that run `caraway run` or `cluster up` for a project."""
        manifest = str(self.data / "projects" / str(project_id) / "caraway.yaml")
        return [pid for pid, words in _command_lines().items() if manifest in words]

    def end_runtimes(self) -> None:
        """End every runtime and its processes, also after a failure of the test."""
        deadline = time.monotonic() + _STOP_S
        while pids := {pid for held in self.runtimes().values() for pid in held if _lives(pid)}:
            assert time.monotonic() < deadline, f"these processes do not end: {pids}"
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            deadlines.until(partial(_have_ended, pids), "ended runtimes", _STOP_S)

    def _environ(self) -> dict[str, str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("CARAWAY_")
        }
        return {
            **inherited, "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config"),
            **self.host.environ, **self.environ,
        }  # fmt: skip


@contextlib.contextmanager
def laptop(home: Path, **settings: Any) -> Iterator[Laptop]:
    """Return an empty data directory; its processes have ended after the block."""
    made = Laptop(home, **settings)
    try:
        yield made
    finally:
        made.end_runtimes()


def _command_lines() -> dict[int, list[str]]:
    found = {}
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found[int(file.parent.name)] = file.read_text(errors="replace").split("\0")
    return found


def _have_ended(pids: set[int]) -> bool:
    return not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
