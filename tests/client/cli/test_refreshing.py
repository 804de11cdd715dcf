import io
import json

import pytest

from caraway.cli import refreshing
from caraway.client import Client
from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime, Pauses
from tests.client.test_refreshes import REFRESH, STANDING, busy, stands, told


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caraway.refreshes._FIRST_PAUSE_S", 0.0)


@pytest.fixture
def begins(runtime: FakeRuntime) -> None:
    runtime.answers(REFRESH, Answer(201, b'{"message":"Dataset \'orders\': has begun."}'))


@pytest.mark.usefixtures("begins")
def test_each_change_is_a_line_and_the_version_is_the_answer(
    ask: Command, runtime: FakeRuntime
) -> None:
    runtime.answers(
        STANDING, *told(busy(1), busy(1, is_asked_for_again=True), busy(2), busy(2, 1500),
                        busy(2, 1500), stands(3)),
    )  # fmt: skip

    shown = ask("refresh", "orders", "--sql", "SELECT * FROM orders", "--mode", "append")

    assert (shown.exit_code, shown.stdout) == (0, "orders: version 3, 30 rows, 99 bytes\n")
    assert shown.stderr.splitlines() == [
        "orders: follows the refresh under way",
        "orders: refreshing",
        "orders: refreshing: 1,500 rows, 1.5 kB",
    ]
    posted = next(asked for asked in runtime.asked if asked.method == "POST")
    assert json.loads(posted.body) == {
        "refresh_sql": "SELECT * FROM orders",
        "refresh_mode": "append",
    }


@pytest.mark.usefixtures("begins")
def test_without_waiting_it_prints_what_the_server_says(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(stands(1)))

    shown = ask("refresh", "orders", "--no-wait")

    assert (shown.exit_code, shown.stdout) == (0, "Dataset 'orders': has begun.\n")
    assert [asked.method for asked in runtime.asked] == ["POST"]


@pytest.mark.usefixtures("begins")
def test_failure_is_exit_code_1_with_the_reason_of_the_server(
    ask: Command, runtime: FakeRuntime
) -> None:
    runtime.answers(STANDING, *told(stands(1), busy(1), stands(1, error="the source broke off")))

    shown = ask("refresh", "orders")

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "error: 'orders' is not refreshed: the source broke off\n" in shown.stderr


@pytest.mark.usefixtures("begins")
def test_ctrl_c_leaves_the_refresh_running(
    ask: Command, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    runtime.answers(STANDING, *told(stands(1), busy(1)))
    monkeypatch.setattr("caraway.refreshes.Outcome.is_over", interrupted)

    shown = ask("refresh", "orders")

    assert shown.exit_code == 130
    assert "the refresh of 'orders' goes on" in shown.stderr
    assert sum(asked.method == "POST" for asked in runtime.asked) == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(404, b'{"message":"no dataset \'orders\'"}'), "error: no dataset 'orders'\n"),
        (Answer(400, b'{"message":"not accelerated"}'), "error: not accelerated\n"),
    ],
)
def test_what_cannot_be_refreshed_is_told(
    ask: Command, runtime: FakeRuntime, answer: Answer, says: str
) -> None:
    runtime.answers(STANDING, answer)

    shown = ask("refresh", "orders")

    assert (shown.exit_code, shown.stderr) == (1, says)
    assert len(runtime.asked) == 1


def test_key_that_may_only_read_is_told_what_is_needed(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(stands(1)))
    runtime.answers(REFRESH, Answer(403, b'{"message":"needs a key that ends in :rw"}'))

    shown = ask("refresh", "orders")

    assert shown.exit_code == 1
    assert "':rw'" in shown.stderr


def test_unknown_mode_is_a_usage_error(ask: Command, runtime: FakeRuntime) -> None:
    assert ask("refresh", "orders", "--mode", "changes").exit_code == 2
    assert not runtime.asked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", ["orders", "[red]orders"])
def test_a_terminal_shows_a_bar(runtime: FakeRuntime, name: str) -> None:
    runtime.answers(STANDING, *told(busy(1, 2_500_000), stands(2)))
    runtime.answers(
        "GET /v1/datasets/%5Bred%5Dorders/acceleration", *told(busy(1, 2_500_000), stands(2))
    )
    terminal = Terminal()

    with Client(runtime.endpoint, sleep=Pauses()) as client:
        assert refreshing.wait(client, name, stands(1), terminal).version == 2

    assert "\x1b[" in terminal.getvalue()
    assert name in terminal.getvalue()
    assert "2.5 MB" in terminal.getvalue()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (999_960, "1.0 MB"),
     (12_345_678_901, "12.3 GB"), (5_000_000_000_000_000, "5,000.0 TB")],
)  # fmt: skip
def test_sizes_are_short(size: int, text: str) -> None:
    assert refreshing._size(size) == text
