import io
import json
from pathlib import Path
from typing import Any

import pytest

from caraway.cli import waiting
from caraway.statements.queries import QueryHandle
from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime, Pauses, pausing

SUBMIT, STATUS, RESULTS = (
    "POST /v1/queries",
    "GET /v1/queries/Q-1/status",
    "GET /v1/queries/Q-1/results",
)
TABLE = b"+---+\n| n |\n+---+\n| 1 |\n+---+\n"
RUNNING = {"progress": {"tasks_done": 3, "tasks_total": 8, "rows": 12_000}}
FAILED = {"error": {"error_code": "TIMEOUT", "message": "too slow"}}


def state(status: str, **more: Any) -> Answer:
    return Answer(body=json.dumps({"query_id": "Q-1", "status": status, **more}).encode())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    # The fake runtime does not support long polling, so the client would pause between polls.
    monkeypatch.setattr("caraway.statements.queries._PAUSE_S", 0.0)


def submits(runtime: FakeRuntime) -> None:
    runtime.answers(SUBMIT, Answer(202, b'{"query_id":"Q-1","status":"PENDING"}'))


def test_submit_prints_only_the_id_to_stdout(ask: Command, runtime: FakeRuntime) -> None:
    submits(runtime)

    shown = ask("query", "submit", "SELECT :n;", "--param", "n=1", "--timeout", "5",
                "--maximum-size", "1KiB", "--idempotency-key", "k")  # fmt: skip

    assert (shown.exit_code, shown.stdout) == (0, "Q-1\n")
    assert "caraway query results Q-1" in shown.stderr
    assert json.loads(runtime.asked[0].body) == {
        "sql": "SELECT :n", "parameters": {"n": 1}, "timeout_seconds": 5.0, "maximum_size": 1024,
    }  # fmt: skip
    assert runtime.asked[0].headers["idempotency-key"] == "k"


def test_submit_reads_a_file_and_standard_input(
    ask: Command, runtime: FakeRuntime, tmp_path: Path
) -> None:
    submits(runtime)
    (tmp_path / "q.sql").write_text("SELECT 1")

    ask("query", "submit", "--file", str(tmp_path / "q.sql"))
    ask("query", "submit", "-", stdin="SELECT 2")

    assert [json.loads(asked.body)["sql"] for asked in runtime.asked] == ["SELECT 1", "SELECT 2"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("SELECT 1; SELECT 2",), "2 statements"),
        ((" ",), "no statement"),
        (("SELECT 1", "--maximum-size", "much"), "not a size"),
        (("SELECT 1", "--param", "n"), "NAME=VALUE"),
        (("SELECT 1", "--timeout", "-1"), "--timeout"),
    ],
)
def test_an_invalid_submission_is_a_usage_error(
    ask: Command, runtime: FakeRuntime, arguments: tuple[str, ...], says: str
) -> None:
    shown = ask("query", "submit", *arguments)

    assert shown.exit_code == 2
    assert says in shown.stderr
    assert not runtime.asked


def test_submit_waits_and_shows_each_change(ask: Command, runtime: FakeRuntime) -> None:
    submits(runtime)
    runtime.answers(
        STATUS, state("PENDING"), state("RUNNING", **RUNNING), state("RUNNING", **RUNNING),
        state("SUCCEEDED"),
    )  # fmt: skip

    shown = ask("query", "submit", "SELECT 1", "--wait")

    assert (shown.exit_code, shown.stdout) == (0, "Q-1\n")
    assert shown.stderr.splitlines() == [
        "PENDING",
        "RUNNING: 3 of 8 tasks, 12,000 rows",
        "fetch the rows with: caraway query results Q-1",
    ]


@pytest.mark.parametrize(
    ("ended", "says"),
    [
        (state("FAILED", **FAILED), "query 'Q-1' failed: too slow (TIMEOUT)"),
        (state("CANCELLED"), "query 'Q-1' was cancelled"),
        (state("CLOSED"), "have expired"),
    ],
)
def test_a_query_that_did_not_succeed_is_an_error(
    ask: Command, runtime: FakeRuntime, ended: Answer, says: str
) -> None:
    submits(runtime)
    runtime.answers(STATUS, ended)

    for arguments in (("submit", "SELECT 1", "--wait"), ("results", "Q-1")):
        shown = ask("query", *arguments)
        assert shown.exit_code == 1
        assert says in shown.stderr


@pytest.mark.parametrize("arguments", [("submit", "SELECT 1", "--wait"), ("results", "Q-1")])
def test_ctrl_c_leaves_the_query_running(
    ask: Command, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    submits(runtime)
    monkeypatch.setattr(QueryHandle, "watch", interrupted)

    shown = ask("query", *arguments)

    assert shown.exit_code == 130
    assert (
        "query 'Q-1' is still running; fetch the rows with: caraway query results Q-1"
        in shown.stderr
    )
    assert not any("cancel" in asked.path for asked in runtime.asked)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar(runtime: FakeRuntime) -> None:
    runtime.answers(STATUS, state("PENDING"), state("RUNNING", **RUNNING), state("SUCCEEDED"))
    terminal = Terminal()

    with pausing(Pauses(), http_url=runtime.endpoint) as client:
        assert waiting.wait_for_success(client.open_query("Q-1"), terminal).has_succeeded

    assert "\x1b[" in terminal.getvalue()
    assert runtime.asked[0].query == {"wait": "1"}


def test_the_status_is_printed_as_a_table_or_as_json(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(STATUS, state("RUNNING", **RUNNING))

    header, row = ask("query", "status", "Q-1").stdout.splitlines()
    as_json = json.loads(ask("query", "status", "Q-1", "--format", "json").stdout)

    assert header.split() == ["query_id", "status", "progress"]
    assert row.split()[:2] == ["Q-1", "RUNNING"]
    assert "3 of 8 tasks" in row
    assert as_json == {"query_id": "Q-1", "status": "RUNNING", **RUNNING}


def test_the_status_of_a_failed_query_exits_with_1(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(STATUS, state("RUNNING"), state("FAILED", **FAILED))

    shown = ask("query", "status", "Q-1", "--wait", "30")

    assert shown.exit_code == 1
    assert "TIMEOUT: too slow" in shown.stdout
    assert float(runtime.asked[0].query["wait"]) == pytest.approx(20)


def test_an_unknown_query_is_reported_without_a_misleading_hint(
    ask: Command, runtime: FakeRuntime
) -> None:
    runtime.answers(STATUS, Answer(404, b'{"error":"no query \'Q-1\'"}'))

    shown = ask("query", "status", "Q-1")

    assert (shown.exit_code, shown.stderr) == (1, "error: no query 'Q-1'\n")


@pytest.mark.parametrize(
    ("format", "accept"),
    [
        ("table", "text/plain"),
        ("csv", "text/csv"),
        ("ndjson", "application/x-ndjson"),
        ("arrow", "application/vnd.apache.arrow.stream"),
        ("parquet", "application/vnd.apache.parquet"),
    ],
)
def test_results_are_passed_through(
    ask: Command, runtime: FakeRuntime, format: str, accept: str
) -> None:
    runtime.answers(STATUS, state("SUCCEEDED"))
    runtime.answers(RESULTS, Answer(body=TABLE))

    shown = ask("query", "results", "Q-1", "--format", format)

    assert (shown.exit_code, shown.stdout_bytes) == (0, TABLE)
    assert runtime.asked[-1].headers["accept"] == accept


def test_results_as_json_are_one_array(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(STATUS, state("SUCCEEDED"))
    runtime.answers(RESULTS, Answer(body=b'{"n":1}\n{"n":2}\n'))

    shown = ask("query", "results", "Q-1", "--format", "json")

    assert json.loads(shown.stdout) == [{"n": 1}, {"n": 2}]


def test_the_output_file_appears_once_it_is_complete(
    ask: Command, runtime: FakeRuntime, tmp_path: Path
) -> None:
    file = tmp_path / "rows.parquet"
    runtime.answers(STATUS, state("SUCCEEDED"))
    runtime.answers(RESULTS, Answer(body=b"PAR", breaks_off=True), Answer(body=b"PAR1"))
    arguments = ("query", "results", "Q-1", "--format", "parquet", "--output", str(file))

    assert ask(*arguments).exit_code == 1
    assert list(tmp_path.iterdir()) == []
    assert ask(*arguments).exit_code == 0
    assert file.read_bytes() == b"PAR1"


def test_cancel_prints_the_status(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("POST /v1/queries/Q-1/cancel", state("CANCELLED"))

    assert ask("query", "cancel", "Q-1").stdout == "CANCELLED\n"


def test_the_list_is_printed_as_a_table_or_as_json(ask: Command, runtime: FakeRuntime) -> None:
    entry = {"query_id": "Q-1", "status": "FAILED", "sql_preview": "SELECT 1", "created_at": "t"}
    runtime.answers(
        "GET /v1/queries", Answer(body=json.dumps({"queries": [entry], "total_count": 1}).encode())
    )

    shown = ask("query", "list", "--status", "failed", "--limit", "5")
    as_json = ask("query", "list", "--format", "json")

    assert shown.stdout.splitlines()[1].split() == ["Q-1", "FAILED", "t", "SELECT", "1"]
    assert runtime.asked[0].query == {"limit": "5", "status": "failed"}
    assert json.loads(as_json.stdout) == [entry]
