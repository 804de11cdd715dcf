import re
from itertools import count
from pathlib import Path

import pytest

from caraway.cli import ingesting
from caraway.routes.ingests import IngestApi
from tests.client.cli.conftest import Command
from tests.client.routes.ingesting import ROUTE, applied
from tests.client.runtime import Answer, FakeRuntime

LINES = '{"op":"t"}\n' * 5
DONE = re.compile(r"orders: 5 changes in [0-9.]+ s, [0-9,]+ rows/s\n")


def test_a_file_is_sent_in_batches(ask: Command, runtime: FakeRuntime, tmp_path: Path) -> None:
    runtime.answers(ROUTE, applied(2), applied(2), applied(1))
    file = tmp_path / "changes.ndjson"
    file.write_text(LINES)

    shown = ask("ingest", "orders", str(file), "--batch", "2")

    assert shown.exit_code == 0
    assert DONE.fullmatch(shown.stdout)
    assert shown.stderr == ""
    assert len(runtime.asked) == 3


def test_standard_input_is_read(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(ROUTE, applied(5))

    shown = ask("ingest", "orders", "-", stdin=LINES)

    assert (shown.exit_code, runtime.asked[0].body.decode() + "\n") == (0, LINES)


def test_progress_is_reported(
    ask: Command, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "_REPORT_INTERVAL_S", 0.0)
    runtime.answers(ROUTE, applied(3), applied(2))

    shown = ask("ingest", "orders", "-", "--batch", "3", stdin=LINES)

    assert [line.split(" in ")[0] for line in shown.stderr.splitlines()] == [
        "orders: 3 changes",
        "orders: 5 changes",
    ]


def test_a_rejected_request_exits_with_1_and_reports_what_was_applied(
    ask: Command, runtime: FakeRuntime
) -> None:
    runtime.answers(ROUTE, applied(3), Answer(400, b'{"message":"event 2: it has no \'op\'"}'))

    shown = ask("ingest", "orders", "-", "--batch", "3", stdin=LINES)

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr.splitlines() == [
        "orders: 3 changes applied (requests: 1)",
        "error: request 2: event 2: it has no 'op'",
    ]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(404, b'{"message":"no dataset \'orders\'"}'), "error: no dataset 'orders'\n"),
        (Answer(403, b'{"message":"needs a key"}'), "':rw'"),
    ],
)
def test_a_rejected_first_request_reports_only_the_error(
    ask: Command, runtime: FakeRuntime, answer: Answer, says: str
) -> None:
    runtime.answers(ROUTE, answer)

    shown = ask("ingest", "orders", "-", stdin=LINES)

    assert shown.exit_code == 1
    assert shown.stderr.startswith("error: ") and says in shown.stderr


def test_ctrl_c_reports_what_was_applied(
    ask: Command, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.answers(ROUTE, applied(3))
    sent, numbers = IngestApi._send_batch, count()

    def interrupted(self: IngestApi, name: str, body: bytes) -> int:
        if next(numbers):
            raise KeyboardInterrupt
        return sent(self, name, body)

    monkeypatch.setattr(IngestApi, "_send_batch", interrupted)

    shown = ask("ingest", "orders", "-", "--batch", "3", stdin=LINES)

    assert shown.exit_code == 130
    assert shown.stderr == "orders: 3 changes applied (requests: 1), possibly one more\n"


def test_a_missing_file_is_reported(ask: Command, runtime: FakeRuntime) -> None:
    shown = ask("ingest", "orders", "nowhere.ndjson")

    assert shown.exit_code == 1
    assert "nowhere.ndjson" in shown.stderr
    assert not runtime.asked
