"""Runs other engines in processes of their own, one statement at a time."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

_ROOT = Path(__file__).parent.parent
_OTHERS = Path(__file__).parent / "data"
_START_S, _STOP_S = 120.0, 30.0


class RivalError(Exception):
    """A rival failed to run a statement. It can run further statements."""


class Rival:
    """One program of `bench.rivals`, restarted when a statement times out."""

    def __init__(self, name: str, folder: Path, python: Path, scratch: Path) -> None:
        self._command: Sequence[str] = (str(python), "-m", f"bench.rivals.{name}", str(folder))
        self._log = scratch / f"{name}.log"
        self._answer = scratch / f"{name}.arrow"
        self._process = self._start()

    def time(self, sql: str, limit_s: float) -> float:
        """Run a statement and return its duration in seconds.

        Raises:
            RivalError: the statement failed or timed out.
        """
        seconds: float = self._ask({"sql": sql, "file": None}, limit_s)["seconds"]
        return seconds

    def answer(self, sql: str, limit_s: float) -> pa.Table:
        """Run a statement and return its rows. Raises as `time` does."""
        self._ask({"sql": sql, "file": str(self._answer)}, limit_s)
        with pa.OSFile(str(self._answer)) as file:
            return pa.ipc.open_stream(file).read_all()

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._kill()

    # Any: a line of JSON.
    def _ask(self, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        try:
            reply: dict[str, Any] = json.loads(self._line(limit_s))
        except TimeoutError:
            self._kill()
            self._process = self._start()
            raise RivalError(f"timed out after {limit_s:.0f} s") from None
        if "error" in reply:
            raise RivalError(reply["error"])
        return reply

    def _start(self) -> subprocess.Popen[bytes]:
        quiet = {"DO_NOT_TRACK": "1", "RAY_USAGE_STATS_ENABLED": "0", "DAFT_PROGRESS_BAR": "0"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0,
                cwd=_ROOT, env={**os.environ, **quiet}, start_new_session=True,
            )  # fmt: skip
        self._line(_START_S)
        return self._process

    def _line(self, limit_s: float) -> bytes:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], limit_s)[0]:
            raise TimeoutError
        line = self._process.stdout.readline()
        if not line:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{self._command} exited with {self._process.wait()}:\n{tail}")
        return line

    def _kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def plain(folder: Path) -> Iterator[Rival]:
    """Run plain DataFusion, from our own environment, over a folder of Parquet files."""
    with _running("plain", folder, Path(sys.executable)) as rival:
        yield rival


@contextlib.contextmanager
def other(name: str, folder: Path) -> Iterator[Rival]:
    """Run a rival in the environment of `requirements/rivals.txt`, created if missing."""
    with _running(name, folder, other_python()) as rival:
        yield rival


@contextlib.contextmanager
def _running(name: str, folder: Path, python: Path) -> Iterator[Rival]:
    with tempfile.TemporaryDirectory() as scratch:
        rival = Rival(name, folder, python, Path(scratch))
        try:
            yield rival
        finally:
            rival.close()


def other_python(name: str = "rivals") -> Path:
    """Return the Python of an environment of `requirements/{name}.txt`, created if missing."""
    folder, requirements = _OTHERS / name, _ROOT / "requirements" / f"{name}.txt"
    python = folder / "bin" / "python"
    wanted = requirements.read_text()
    installed = folder / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted:
        print(f"  installing {requirements.name} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "-r", str(requirements)], check=True,
        )  # fmt: skip
        installed.write_text(wanted)
    return python
