"""What only shows in a process of its own: pipes that close, terminals, signals."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.client.runtime import Answer, FakeRuntime

WAIT_S = 20.0
CARAWAY = [sys.executable, "-c", "from caraway.cli import main; main()"]


@contextmanager
def started(
    *arguments: str, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE
) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [*CARAWAY, *arguments], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"| 1 |\n" * 1000)
    except OSError:
        # The client has closed its end, which is what a server sees of a cancelled query.
        pass


def test_a_reader_that_stops_ends_the_query_quietly(runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", endless)

    with started("sql", "SELECT 1", "--endpoint", runtime.endpoint) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"| 1 |\n"
        process.stdout.close()
        process.wait(WAIT_S)

        assert process.stderr.read() == b""


def test_ctrl_c_ends_a_query_with_130(runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", endless)

    with started("sql", "SELECT 1", "--endpoint", runtime.endpoint) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"| 1 |\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_S)

    assert (process.returncode, err) == (130, b"")


def test_arrow_is_not_written_to_a_terminal(runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=b"ARROW"))
    reader, terminal = pty.openpty()
    arguments = ("sql", "SELECT 1", "--format", "arrow", "--endpoint", runtime.endpoint)
    try:
        with started(*arguments, stdout=terminal) as process:
            _, err = process.communicate(timeout=WAIT_S)
    finally:
        os.close(reader)
        os.close(terminal)

    assert process.returncode == 2
    assert b"Arrow is binary" in err
    assert runtime.asked == []


def test_a_terminal_without_a_query_gets_the_shell(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=b"+---+\n| n |\n+---+\n| 1 |\n+---+\n"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"SELECT 1;\r.quit\r")
    try:
        with started("sql", "--endpoint", runtime.endpoint, stdin=terminal) as process:
            out, err = process.communicate(timeout=WAIT_S)
    finally:
        os.close(keyboard)
        os.close(terminal)

    assert process.returncode == 0, err
    assert b"(1 row, " in out
    assert "+SELECT 1;" in (tmp_path / "caraway" / "history").read_text()
