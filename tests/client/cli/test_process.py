"""Behaviour that needs a real process: closed pipes, terminals and signals."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
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


# Packages that `pip install caraway` does not install. Client commands must not need them.
RUNTIME_PACKAGES = (
    *("caraway_engine", "caraway_executor", "caraway_plugins", "caraway_gateway"),
    *("datafusion", "fastapi", "obstore", "pyarrow", "starlette", "uvicorn", "zstandard"),
)


def _without(packages: Iterable[str], *words: str) -> "subprocess.CompletedProcess[bytes]":
    """Run a command where these packages are not installed."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({list(packages)!r}));"
        "from caraway.cli import main; main()"
    )
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, timeout=WAIT_S)


@pytest.mark.parametrize("command", ["run", "validate"])
def test_commands_that_need_the_runtime_extra_name_it(command: str) -> None:
    ran = _without(RUNTIME_PACKAGES, command)

    assert ran.returncode == 1
    assert ran.stderr.endswith(b"install it with: pip install 'caraway[runtime]'\n")
    assert ran.stderr.startswith(b"error: command '")


def test_a_package_that_is_missed_late_is_named_with_the_extra(tmp_path: Path) -> None:
    """Another extra may bring all that the command imports first."""
    (tmp_path / "caraway.yaml").write_text("version: v1\nkind: Caraway\nname: shop\n")
    ran = _without(["cronsim"], "run", str(tmp_path))

    assert ran.returncode == 1
    assert b"needs the package 'cronsim'" in ran.stderr
    assert ran.stderr.endswith(b"install it with: pip install 'caraway[runtime]'\n")


def test_client_commands_work_without_the_runtime_extra(runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=b"a\n1\n"))
    runtime.answers("GET /v1/datasets", Answer(body=b"[]"))
    there = ("--endpoint", runtime.endpoint)

    asked = _without(RUNTIME_PACKAGES, "sql", "SELECT 1 AS a", *there)
    listed = _without(RUNTIME_PACKAGES, "datasets", *there)

    assert (asked.returncode, asked.stdout, asked.stderr) == (0, b"a\n1\n", b"")
    assert (listed.returncode, listed.stderr) == (0, b"")


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"| 1 |\n" * 1000)
    except OSError:
        # The client closed the connection; this is how a server notices a cancelled query.
        pass


def test_a_closed_pipe_ends_the_query_without_a_message(runtime: FakeRuntime) -> None:
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


def test_a_terminal_without_a_query_opens_the_shell(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.answers("GET /v1/ready", Answer(body=b"ready"))
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
