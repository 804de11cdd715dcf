"""Starts and stops the servers to measure."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import quotas

BIN = Path(sys.executable).parent
_START_S = 30.0


@contextlib.contextmanager
def caraway(manifest: Path, programs: Path = BIN) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a manifest with the command of a checkout; yield its HTTP address once it is ready."""
    with listening(manifest, programs) as (addresses, process):
        yield f"http://{addresses['http']}", process


@contextlib.contextmanager
def listening(
    manifest: Path, programs: Path = BIN
) -> Iterator[tuple[dict[str, str], subprocess.Popen[bytes]]]:
    """Run a manifest; yield the addresses `http`, `flight` and `metrics` once it is ready."""
    with tempfile.TemporaryDirectory() as data:
        words = ("run", str(manifest), "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
                 "--flight", "127.0.0.1:0", "--data-dir", data)  # fmt: skip
        with started(*words, programs=programs) as found:
            yield found


@contextlib.contextmanager
def started(
    *words: str, programs: Path = BIN
) -> Iterator[tuple[dict[str, str], subprocess.Popen[bytes]]]:
    """Run a command of `caraway`; yield the addresses that it reports once it is ready."""
    reader, writer = os.pipe()
    command = [str(programs / "caraway"), *words, "--ready-fd", str(writer)]
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(command, pass_fds=(writer,), stdout=nowhere, stderr=nowhere)
        os.close(writer)
        try:
            with os.fdopen(reader) as pipe:
                line = pipe.readline()
            if not line:
                raise RuntimeError(f"caraway {words[0]} did not start: exit code {process.wait()}")
            yield json.loads(line), process
        finally:
            end(process)


@contextlib.contextmanager
def roapi(tables: Sequence[str]) -> Iterator[str]:
    """Run roapi over tables given as `name=path`; yield its HTTP address."""
    http, postgres, flight = (unused_port() for _ in range(3))
    command = [str(BIN / "roapi"), "-a", f"127.0.0.1:{http}", "-p", f"127.0.0.1:{postgres}",
               "--addr-flight-sql", f"127.0.0.1:{flight}"]  # fmt: skip
    for table in tables:
        command += ["-t", table]
    environment = {**os.environ, "RUST_LOG": "error"}
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere, env=environment)
        try:
            url = f"http://127.0.0.1:{http}"
            wait_until_it_answers(f"{url}/health")
            yield url
        finally:
            end(process)


def resident_mb(process: subprocess.Popen[bytes]) -> float:
    """Return the resident memory of a process and its engine processes.

    The row memory that they share counts in each of them.
    """
    return sum(_status(pid, "VmRSS") for pid in quotas.descendants(process.pid))


def peak_mb(process: subprocess.Popen[bytes]) -> float:
    """Return the sum of the peaks of their resident memory since `reset_peak`."""
    return sum(_status(pid, "VmHWM") for pid in quotas.descendants(process.pid))


def reset_peak(process: subprocess.Popen[bytes]) -> None:
    for pid in quotas.descendants(process.pid):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _status(pid: int, name: str) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    match = re.search(rf"{name}:\s+(\d+) kB", text)
    assert match is not None
    return int(match[1]) / 1024


def unused_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_it_answers(url: str) -> None:
    """Wait until a server answers with a success."""
    deadline = time.monotonic() + _START_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that a suite has started."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
