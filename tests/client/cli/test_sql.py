import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import flight

from tests.client.cli.conftest import Command
from tests.client.flight_server import flight_running, numbers
from tests.client.runtime import Answer, FakeRuntime, arrow_body, nobody

ROWS = [{"n": 1}, {"n": 2}]
TABLE = b"+---+\n| n |\n+---+\n| 1 |\n+---+\n"


def test_a_query_is_sent_and_its_result_printed(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE))

    shown = ask("sql", "SELECT 1 AS n;")

    assert (shown.exit_code, shown.stdout_bytes) == (0, TABLE)
    assert runtime.asked[0].body == b"SELECT 1 AS n"
    assert runtime.asked[0].headers["accept"] == "text/plain"


@pytest.mark.parametrize(
    ("format", "media_type"),
    [
        ("json", "application/json"),
        ("csv", "text/csv"),
        ("ndjson", "application/x-ndjson"),
    ],
)
def test_the_format_sets_the_accept_header(
    ask: Command, runtime: FakeRuntime, format: str, media_type: str
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=b"\xff\x00\n"))

    shown = ask("sql", "SELECT 1", "--format", format)

    assert shown.stdout_bytes == b"\xff\x00\n"
    assert runtime.asked[0].headers["accept"] == media_type


def test_text_ends_with_a_line_break(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=b"[]"))

    assert ask("sql", "SELECT 1", "--format", "json").stdout_bytes == b"[]\n"


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_files_are_written_to_a_pipe(ask: Command, runtime: FakeRuntime, format: str) -> None:
    runtime.answers("POST /v1/sql", Answer(body=arrow_body(ROWS)))

    written = io.BytesIO(ask("sql", "SELECT 1", "--format", format).stdout_bytes)

    read = pa.ipc.open_stream(written).read_all() if format == "arrow" else pq.read_table(written)
    assert read.to_pylist() == ROWS
    assert runtime.asked[0].headers["accept"] == "application/vnd.apache.arrow.stream"


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        ("table", b"+---+\n| n |\n+---+\n| 1 |\n| 2 |\n+---+\n"),
        ("json", b'[{"n":1},\n{"n":2}]\n'),
        ("ndjson", b'{"n":1}\n{"n":2}\n'),
        ("csv", b"n\n1\n2\n"),
    ],
)
def test_text_is_written_to_a_file(
    ask: Command, runtime: FakeRuntime, tmp_path: Path, format: str, expected: bytes
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=arrow_body(ROWS)))
    target = tmp_path / "answer"

    shown = ask("sql", "SELECT 1", "--format", format, "--output", str(target))

    assert (shown.exit_code, shown.stdout, shown.stderr) == (0, "", "")
    assert target.read_bytes() == expected


def test_rows_come_over_flight_if_it_has_an_address(caraway: Command, tmp_path: Path) -> None:
    target = tmp_path / "answer"
    with flight_running() as served:
        shown = caraway("sql", "SELECT n", "--flight-url", served.url, "--format", "csv")
        caraway(
            "sql", "SELECT n", "--flight-url", served.url, "--format", "csv",
            "--output", str(target),
        )  # fmt: skip

    assert shown.stdout == "n\n0\n1\n2\n" == target.read_text()
    assert [name for name, _ in served.asked] == ["info", "get"] * 2


def test_an_answer_that_breaks_off_leaves_no_file(caraway: Command, tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield numbers(0, 10)
        raise flight.FlightInternalError("the executor is gone")

    with flight_running() as served:
        served.scripts = [broken]
        shown = caraway(
            "sql", "SELECT n", "--flight-url", served.url, "--output", str(tmp_path / "answer")
        )

    assert shown.exit_code == 1
    assert "the executor is gone" in shown.stderr
    assert list(tmp_path.iterdir()) == []


def test_parameters_are_sent_typed(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE))

    ask("sql", "SELECT :n, :s", "--param", "n=1", "--param", "s=abc")

    assert json.loads(runtime.asked[0].body) == {
        "sql": "SELECT :n, :s",
        "parameters": {"n": 1, "s": "abc"},
    }


@pytest.mark.parametrize("arguments", [["-"], [], ["--file", "-"]])
def test_statements_from_standard_input_run_in_order(
    ask: Command, runtime: FakeRuntime, arguments: list[str]
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE))

    shown = ask("sql", *arguments, stdin="SELECT 1;\nSELECT 2;\n")

    assert [asked.body for asked in runtime.asked] == [b"SELECT 1", b"SELECT 2"]
    assert shown.stdout_bytes == TABLE * 2


def test_statements_are_read_from_a_file(
    ask: Command, runtime: FakeRuntime, tmp_path: Path
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE))
    query = tmp_path / "query.sql"
    query.write_text("SELECT 'ä' -- done")

    assert ask("sql", "--file", str(query)).exit_code == 0
    assert runtime.asked[0].body == "SELECT 'ä' -- done".encode()


def test_the_result_is_written_to_a_file(
    ask: Command, runtime: FakeRuntime, tmp_path: Path
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=arrow_body([{"n": 1}])))
    target = tmp_path / "answer.txt"

    shown = ask("sql", "SELECT 1", "--output", str(target))

    assert shown.stdout == ""
    assert target.read_bytes() == TABLE
    assert list(tmp_path.iterdir()) == [target]


def test_a_failed_query_keeps_the_existing_file(
    ask: Command, runtime: FakeRuntime, tmp_path: Path
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=arrow_body(ROWS), breaks_off=True))
    target = tmp_path / "answer.txt"
    target.write_text("earlier")

    shown = ask("sql", "SELECT 1", "--output", str(target))

    assert shown.exit_code == 1
    assert "is incomplete" in shown.stderr
    assert target.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SELECT 1", "--param", "x"], "use NAME=VALUE"),
        (["SELECT 1", "--file", "x.sql"], "not both"),
        ([";"], "no statement"),
        (["SELECT 1; SELECT 2", "--format", "arrow"], "one statement"),
        (["SELECT 1", "--format", "xml"], "xml"),
    ],
)
def test_invalid_arguments_are_usage_errors(
    ask: Command, arguments: list[str], message: str
) -> None:
    shown = ask("sql", *arguments)

    assert shown.exit_code == 2
    assert message in shown.stderr


def test_a_malformed_endpoint_is_a_usage_error(caraway: Command) -> None:
    shown = caraway("sql", "SELECT 1", "--endpoint", "ftp://x")

    assert shown.exit_code == 2
    assert "--url: 'ftp://x' is not a valid endpoint" in shown.stderr


def test_a_missing_query_file_prints_one_message(ask: Command, tmp_path: Path) -> None:
    shown = ask("sql", "--file", str(tmp_path / "none.sql"))

    assert shown.exit_code == 1
    assert "none.sql" in shown.stderr


def test_an_sql_error_prints_the_message_of_the_server(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(400, b"table 'x' not found\n"))

    shown = ask("sql", "SELECT * FROM x")

    assert (shown.exit_code, shown.stderr) == (1, "error: table 'x' not found\n")


def test_a_missing_key_gets_a_hint(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(401, b"Unauthorized"))

    shown = ask("sql", "SELECT 1")

    assert shown.exit_code == 1
    assert "Unauthorized (401); the runtime requires an API key: pass --api-key" in shown.stderr


def test_the_key_and_the_endpoint_come_from_the_environment(
    caraway: Command, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=TABLE))
    monkeypatch.setenv("CARAWAY_ENDPOINT", runtime.endpoint)
    monkeypatch.setenv("CARAWAY_API_KEY", "secret")

    assert caraway("sql", "SELECT 1").exit_code == 0
    assert runtime.asked[0].headers["x-api-key"] == "secret"


def test_a_busy_server_is_retried(ask: Command, runtime: FakeRuntime) -> None:
    busy = Answer(429, b"the queue is full", {"Retry-After": "0"})
    runtime.answers("POST /v1/sql", busy, busy, Answer(body=TABLE))

    assert ask("sql", "SELECT 1").exit_code == 0
    assert len(runtime.asked) == 3


def test_a_stopping_server_is_reported(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/sql", Answer(503, b"Runtime is shutting down"))

    shown = ask("sql", "SELECT 1")

    assert shown.exit_code == 1
    assert "Runtime is shutting down (503)" in shown.stderr


def test_an_unreachable_endpoint_gets_a_hint(caraway: Command) -> None:
    with nobody() as endpoint:
        shown = caraway("sql", "SELECT 1", "--endpoint", endpoint)

    assert shown.exit_code == 1
    assert f"cannot connect to {endpoint}: is the runtime running? (start it with" in shown.stderr


def test_rows_go_to_a_pipe_that_has_a_name(
    ask: Command, runtime: FakeRuntime, tmp_path: Path
) -> None:
    """A rename would replace the pipe by a file, or a device such as /dev/null."""
    runtime.answers("POST /v1/sql", Answer(body=arrow_body(ROWS)))
    target = tmp_path / "pipe"
    os.mkfifo(target)
    reading = os.open(target, os.O_RDONLY | os.O_NONBLOCK)

    shown = ask("sql", "SELECT 1", "--format", "csv", "--output", str(target))

    assert (shown.exit_code, os.read(reading, 100)) == (0, b"n\n1\n2\n")
    assert target.is_fifo() and os.listdir(tmp_path) == ["pipe"]
    os.close(reading)


def test_a_link_still_leads_to_the_file_that_is_written(
    ask: Command, runtime: FakeRuntime, tmp_path: Path
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=arrow_body(ROWS)))
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)

    assert ask("sql", "SELECT 1", "--format", "csv", "--output", str(link)).exit_code == 0

    assert link.is_symlink() and target.read_bytes() == b"n\n1\n2\n"


@pytest.mark.parametrize(
    ("output", "code", "says"),
    [
        ("", 2, "is a directory"),
        (".", 2, "is a directory"),
        ("missing/rows.csv", 1, "there is no directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_the_query(
    ask: Command, runtime: FakeRuntime, tmp_path: Path, output: str, code: int, says: str
) -> None:
    target = str(tmp_path / output) if output else output

    shown = ask("sql", "SELECT 1", "--output", target)

    assert shown.exit_code == code and says in shown.stderr
    assert "bug" not in shown.stderr and not runtime.asked


def test_explain_is_drawn_as_a_tree(ask: Command, runtime: FakeRuntime) -> None:
    row = {"plan_type": "physical_plan", "plan": "A\n  B\n  C"}
    runtime.answers("POST /v1/sql", Answer(body=json.dumps(row).encode() + b"\n"))

    shown = ask("sql", "EXPLAIN SELECT 1")

    assert shown.stdout == "physical_plan:\nA\n├─ B\n└─ C\n"
    assert runtime.asked[0].headers["accept"] == "application/x-ndjson"


def test_explain_in_another_format_is_as_the_server_sends_it(
    ask: Command, runtime: FakeRuntime
) -> None:
    runtime.answers("POST /v1/sql", Answer(body=b"[]"))

    assert ask("sql", "EXPLAIN SELECT 1", "--format", "json").stdout == "[]\n"
