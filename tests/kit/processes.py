"""Runs the real command as a child process."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

CARAWAY = Path(sys.executable).parent / "caraway"
_STOP_S = 60


@dataclass(slots=True)
class Child:
    """A running `caraway run`, and clients of its two ports."""

    process: subprocess.Popen[str]
    api: httpx.Client
    metrics: httpx.Client
    log: Path
    addresses: dict[str, str]

    def sql(self, sql: str, accept: str = "application/json") -> httpx.Response:
        return self.api.post(
            "/v1/sql", content=sql, headers={"content-type": "text/plain", "accept": accept}
        )

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(_STOP_S)

    @property
    def pids(self) -> list[int]:
        """The serving process and its descendants."""
        found = [self.process.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
                found += map(int, children.split())
        return found

    @contextlib.contextmanager
    def small_files(self, size_bytes: int) -> Iterator[None]:
        """Limit the size of files, like a full disk."""
        before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in self.pids}
        for pid, (_, hard) in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, hard))
        try:
            yield
        finally:
            for pid, limits in before.items():
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)

    def logged(self) -> str:
        return self.log.read_text()


@contextlib.contextmanager
def child(
    folder: Path,
    manifest: Path,
    *flags: str,
    secure: bool = False,
    environ: dict[str, str] | None = None,
    program: Path = CARAWAY,
) -> Iterator[Child]:
    """Run a manifest; the block begins when all datasets are loaded."""
    reader, writer = os.pipe()
    log = folder / "log.txt"
    command = [str(program), "run", str(manifest), *_ports(), "--data-dir", str(folder / "data"),
               "--ready-fd", str(writer), *flags]  # fmt: skip
    with log.open("w") as out:
        process = subprocess.Popen(
            command, pass_fds=(writer,), stdout=out, stderr=out, text=True,
            start_new_session=True, cwd=folder, env={**os.environ, **(environ or {})},
        )  # fmt: skip
    os.close(writer)
    try:
        with os.fdopen(reader) as pipe:
            line = pipe.readline()
        assert line, f"caraway did not start:\n{log.read_text()}"
        addresses = json.loads(line)
        scheme = "https" if secure else "http"
        with (
            httpx.Client(
                base_url=f"{scheme}://{addresses['http']}", timeout=60, verify=False
            ) as api,
            httpx.Client(base_url=f"http://{addresses['metrics']}", timeout=60) as metrics,
        ):
            yield Child(process, api, metrics, log, addresses)
    finally:
        _end(process)


def refused(folder: Path, manifest: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run a manifest that must fail to start; return its output."""
    command: Sequence[str] = [str(CARAWAY), "run", str(manifest), *_ports(),
                              "--data-dir", str(folder / "data"), *flags]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder)


def command_lines() -> list[str]:
    """Return the command line of every process of the machine."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def _ports() -> list[str]:
    return ["--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--flight", "127.0.0.1:0"]


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("caraway did not stop on SIGTERM") from None
