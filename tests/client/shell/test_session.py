import contextlib
import io
import signal
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from caraway import shell
from caraway.client import Client
from caraway.errors import UnreachableError
from caraway.rows.formats import Format
from caraway.shell.session import Shell
from tests.client.runtime import WAIT_S, Answer, FakeRuntime, nobody

TABLE = b"+---+\n| n |\n+---+\n| 1 |\n+---+\n"

Typed = Callable[[str], str]


@pytest.fixture
def client(runtime: FakeRuntime) -> Iterator[Client]:
    with Client(http_url=runtime.endpoint, max_retries=0) as client:
        yield client


@pytest.fixture
def typed(
    runtime: FakeRuntime,
    client: Client,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Typed:
    """Type keys into a shell until it exits, and return its output and errors."""
    runtime.answers("GET /v1/ready", Answer(body=b"ready"))

    def run(keys: str) -> str:
        with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
            pipe.send_text(keys)
            assert shell.open_shell(client, Format.TABLE, tmp_path / "history") == 0
        out, err = capfdbinary.readouterr()
        return (out + err).decode().partition(".quit to exit.\n")[2]

    return run


@pytest.fixture
def session(client: Client) -> Shell:
    """A shell in which each statement takes a quarter of a second."""
    ticks = iter(range(1000))
    return Shell(client, io.BytesIO(), io.StringIO(), clock=lambda: next(ticks) / 4)


def printed(session: Shell) -> str:
    assert isinstance(session.out, io.BytesIO)
    return session.out.getvalue().decode()


def complaints(session: Shell) -> str:
    assert isinstance(session.err, io.StringIO)
    return session.err.getvalue()


def test_a_statement_on_two_lines_runs_at_its_semicolon(typed: Typed, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE))

    out = typed("SELECT 1\rAS n;\r.quit\r")

    assert [asked.body for asked in runtime.asked[1:]] == [b"SELECT 1\nAS n"]
    assert out.startswith(TABLE.decode() + "(1 row, ")


def test_ctrl_d_exits_and_keeps_the_history(typed: Typed, tmp_path: Path) -> None:
    assert typed(".timing\r\x04") == "timing is off\n"
    assert "+.timing" in (tmp_path / "history").read_text()


def test_ctrl_c_at_the_prompt_discards_the_input(typed: Typed, runtime: FakeRuntime) -> None:
    assert typed("SELECT nonsense\x03.quit\r") == ""
    assert [asked.path for asked in runtime.asked] == ["/v1/ready"]


def test_a_runtime_that_is_not_ready_is_reported(typed: Typed, runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/ready", Answer(503, b"not ready"))

    assert "Not everything is loaded yet" in typed(".quit\r")


def test_the_shell_does_not_open_without_a_runtime(tmp_path: Path) -> None:
    with nobody() as endpoint, Client(http_url=endpoint) as client, pytest.raises(UnreachableError):
        shell.open_shell(client, Format.TABLE, tmp_path / "history")


@pytest.mark.parametrize("word", ["quit", "exit;", ".quit", ".exit"])
def test_exit_commands(session: Shell, word: str) -> None:
    session.handle(word)

    assert session.has_ended


def test_row_count_and_duration_follow_the_result(session: Shell, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE), Answer(body=b"a\n1\n2"))

    session.handle("SELECT 1;")
    session.handle(".format csv")
    session.handle(".timing off")
    session.handle("SELECT a;")

    assert printed(session) == (
        TABLE.decode() + "(1 row, 0.250 s)\nformat is csv\ntiming is off\na\n1\n2\n(2 rows)\n"
    )
    assert [asked.headers["accept"] for asked in runtime.asked] == ["text/plain", "text/csv"]


def test_an_error_stops_the_remaining_statements(session: Shell, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(400, b"table 'x' not found"))

    session.handle("SELECT * FROM x; SELECT 2;")

    assert complaints(session) == "error: table 'x' not found\n"
    assert len(runtime.asked) == 1
    assert not session.has_ended


def test_tables_and_schema_query_the_information_schema(
    session: Shell, runtime: FakeRuntime
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE))

    session.handle(".tables")
    session.handle(".schema o'rders")
    session.handle(".schema runtime.task_history")

    tables, orders, history = (asked.body.decode() for asked in runtime.asked)
    assert "FROM information_schema.tables" in tables
    assert "WHERE table_name = 'o''rders' ORDER" in orders
    assert "table_name = 'task_history' AND table_schema = 'runtime'" in history


def test_help_lists_every_command(session: Shell) -> None:
    session.handle(".help")

    for command in (".tables", ".schema", ".format", ".timing", ".help", ".quit"):
        assert command in printed(session)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (".fly", "unknown command '.fly'; commands: .tables"),
        (".schema", "usage: .schema NAME"),
        (".format xml", "unknown format 'xml'; formats: table, csv, ndjson, json"),
    ],
)
def test_invalid_commands_list_the_valid_ones(session: Shell, line: str, complaint: str) -> None:
    session.handle(line)

    assert complaint in complaints(session)


def test_ctrl_c_closes_the_connection_of_the_running_statement(
    session: Shell, runtime: FakeRuntime
) -> None:
    is_closed = threading.Event()
    main_thread = threading.main_thread().ident
    assert main_thread is not None

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(b"+---+\n")
        handler.wfile.flush()
        signal.pthread_kill(main_thread, signal.SIGINT)
        # Send nothing more. This read returns when the client closes the connection.
        handler.connection.settimeout(WAIT_S)
        with contextlib.suppress(ConnectionResetError):
            assert handler.connection.recv(1) == b""
        is_closed.set()

    runtime.answers("POST /v1/sql", endless, Answer(body=TABLE))

    session.handle("SELECT * FROM endless;")

    assert complaints(session) == "cancelled\n"
    assert is_closed.wait(WAIT_S)
    session.handle("SELECT 1;")
    assert "(1 row" in printed(session)


def test_explain_is_drawn_as_a_tree(session: Shell, runtime: FakeRuntime) -> None:
    body = b'{"plan_type":"logical_plan","plan":"Filter\\n  Scan"}\n'
    runtime.answers("POST /v1/sql", Answer(body=body))

    session.handle("EXPLAIN SELECT 1;")

    assert printed(session) == "logical_plan:\nFilter\n└─ Scan\n(0.250 s)\n"


def test_commands_of_psql_work(session: Shell, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE))

    session.handle("\\timing")
    session.handle("\\d orders")
    session.handle("\\d")
    session.handle("\\q")

    assert printed(session).startswith("timing is off\n")
    assert b"'orders'" in runtime.asked[0].body
    assert b"information_schema.tables" in runtime.asked[1].body
    assert session.has_ended
