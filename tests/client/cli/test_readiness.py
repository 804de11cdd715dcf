from collections.abc import Iterator

import pytest

from caraway.cli import readiness
from caraway.client import Client
from caraway.errors import UnreachableError
from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime, Pauses, nobody


class Clock:
    """A clock that advances by one second at each call."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def client(runtime: FakeRuntime) -> Iterator[Client]:
    with Client(http_url=runtime.endpoint) as client:
        yield client


def test_ready_exits_with_0(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/ready", Answer(body=b"ready"))

    shown = ask("ready")

    assert (shown.exit_code, shown.stdout) == (0, "ready\n")


def test_not_ready_exits_with_1_and_shows_the_conditions(
    ask: Command, runtime: FakeRuntime
) -> None:
    runtime.answers("GET /v1/ready", Answer(503, b"[-] components\nnot ready\n"))

    shown = ask("ready", "--verbose")

    assert (shown.exit_code, shown.stdout) == (1, "[-] components\nnot ready\n")
    assert runtime.asked[0].query == {"verbose": "true"}


def test_waiting_polls_until_ready(client: Client, runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/ready", Answer(503), Answer(503), Answer(body=b"ready"))
    pauses = Pauses()

    assert readiness.poll_readiness(client, False, 100, Clock(), pauses) == (True, "ready")
    assert pauses.seconds == [readiness.POLL_INTERVAL_S] * 2


def test_waiting_returns_the_last_response_after_the_timeout(
    client: Client, runtime: FakeRuntime
) -> None:
    runtime.answers("GET /v1/ready", Answer(503, b"not ready"))

    assert readiness.poll_readiness(client, False, 3, Clock(), Pauses()) == (False, "not ready")
    assert len(runtime.asked) == 3


def test_waiting_includes_the_start_of_the_server() -> None:
    pauses = Pauses()
    with nobody() as endpoint, Client(http_url=endpoint) as client, pytest.raises(UnreachableError):
        readiness.poll_readiness(client, False, 2, Clock(), pauses)

    assert len(pauses.seconds) == 1
