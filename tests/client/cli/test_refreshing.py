import io
import json

import pytest

from caraway.cli import refreshing
from tests.client.cli.conftest import Command
from tests.client.routes.refreshing import REFRESH, STANDING, busy, stands, told
from tests.client.runtime import Answer, FakeRuntime, Pauses, pausing


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("caraway.routes.refreshes._FIRST_PAUSE_S", 0.0)


@pytest.fixture
def begins(runtime: FakeRuntime) -> None:
    runtime.answers(REFRESH, Answer(201, b'{"message":"Dataset \'orders\': has begun."}'))


@pytest.mark.usefixtures("begins")
def test_progress_goes_to_stderr_and_the_version_to_stdout(
    ask: Command, runtime: FakeRuntime
) -> None:
    runtime.answers(
        STANDING, *told(busy(1), busy(1, is_asked_for_again=True), busy(2), busy(2, 1500),
                        busy(2, 1500), stands(3)),
    )  # fmt: skip

    shown = ask("refresh", "orders", "--sql", "SELECT * FROM orders", "--mode", "append")

    assert (shown.exit_code, shown.stdout) == (0, "orders: version 3, 30 rows, 99 bytes\n")
    assert shown.stderr.splitlines() == [
        "orders: queued behind the running refresh",
        "orders: refreshing",
        "orders: refreshing: 1,500 rows, 1.5 kB",
    ]
    posted = next(asked for asked in runtime.asked if asked.method == "POST")
    assert json.loads(posted.body) == {
        "refresh_sql": "SELECT * FROM orders",
        "refresh_mode": "append",
    }


@pytest.mark.usefixtures("begins")
def test_no_wait_prints_the_message_of_the_server(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(stands(1)))

    shown = ask("refresh", "orders", "--no-wait")

    assert (shown.exit_code, shown.stdout) == (0, "Dataset 'orders': has begun.\n")
    assert [asked.method for asked in runtime.asked] == ["POST"]


@pytest.mark.usefixtures("begins")
def test_a_failed_refresh_exits_with_1_and_the_reason(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(stands(1), busy(1), stands(1, error="the source broke off")))

    shown = ask("refresh", "orders")

    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "error: refresh of 'orders' failed: the source broke off\n" in shown.stderr


@pytest.mark.usefixtures("begins")
def test_ctrl_c_leaves_the_refresh_running(
    ask: Command, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    runtime.answers(STANDING, *told(stands(1), busy(1)))
    monkeypatch.setattr("caraway.routes.refreshes.RefreshTracker.observe", interrupted)

    shown = ask("refresh", "orders")

    assert shown.exit_code == 130
    assert "the refresh of 'orders' continues on the server" in shown.stderr
    assert sum(asked.method == "POST" for asked in runtime.asked) == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(404, b'{"message":"no dataset \'orders\'"}'), "error: no dataset 'orders'\n"),
        (Answer(400, b'{"message":"not accelerated"}'), "error: not accelerated\n"),
    ],
)
def test_a_dataset_that_cannot_be_refreshed_is_reported(
    ask: Command, runtime: FakeRuntime, answer: Answer, says: str
) -> None:
    runtime.answers(STANDING, answer)

    shown = ask("refresh", "orders")

    assert (shown.exit_code, shown.stderr) == (1, says)
    assert len(runtime.asked) == 1


def test_a_read_only_key_gets_a_hint(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(STANDING, *told(stands(1)))
    runtime.answers(REFRESH, Answer(403, b'{"message":"needs a key that ends in :rw"}'))

    shown = ask("refresh", "orders")

    assert shown.exit_code == 1
    assert "':rw'" in shown.stderr


def test_an_unknown_mode_is_a_usage_error(ask: Command, runtime: FakeRuntime) -> None:
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

    with pausing(Pauses(), http_url=runtime.endpoint) as client:
        assert refreshing.wait_for_refresh(client, name, stands(1), terminal).version == 2

    assert "\x1b[" in terminal.getvalue()
    assert name in terminal.getvalue()
    assert "2.5 MB" in terminal.getvalue()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (999_960, "1.0 MB"),
     (12_345_678_901, "12.3 GB"), (5_000_000_000_000_000, "5,000.0 TB")],
)  # fmt: skip
def test_sizes_are_readable(size: int, text: str) -> None:
    assert refreshing._size(size) == text
