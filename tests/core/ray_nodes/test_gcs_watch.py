"""The watch of a head's state server: which silence ends the node, and which does not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from caraway_core.ray_nodes import gcs_watch, start_hook
from caraway_core.ray_nodes.gcs_watch import Silence, cause_of_end

LIMIT_S = 8.0


class Server:
    """A state server whose answers take the given seconds; None means no answer."""

    def __init__(self, rounds: Iterator[float | None], code: int | None = None) -> None:
        self.now = 0.0
        self.answers = 0
        self.connections = 0
        self.touches = 0
        self._rounds = rounds
        self._code = code

    def connect(self) -> Callable[[], None]:
        self.connections += 1
        return self.ask

    def ask(self) -> None:
        took_s = next(self._rounds)
        self.now += 3.0 if took_s is None else took_s
        if took_s is None:
            raise TimeoutError("deadline exceeded")
        self.answers += 1

    def touch(self) -> None:
        self.touches += 1

    def sleep(self, delay_s: float) -> None:
        self.now += delay_s

    def cause(self) -> str:
        return cause_of_end(
            lambda: self._code, self.connect, LIMIT_S, self.touch, lambda: self.now, self.sleep
        )


def silent() -> Iterator[float | None]:
    while True:
        yield None


def test_a_server_that_falls_silent_ends_the_node_soon() -> None:
    server = Server(iter([0.1, 0.1, *[None] * 9]))
    assert server.cause() == (
        "the state server (GCS) or its Redis does not answer: deadline exceeded"
    )
    last_answer_s = 2 * 0.1 + 2.0
    assert LIMIT_S <= server.now - last_answer_s <= 15
    assert (server.answers, server.connections) == (2, 1)
    assert server.touches == 4  # In each round, with an answer or without.


def test_answers_between_silences_keep_the_node() -> None:
    server = Server(iter([0.1, None, 0.1, None, 0.1, None, 0.1, *[None] * 9]))
    server.cause()
    assert server.answers == 4


def test_a_server_that_ends_before_it_answered_is_known_at_once() -> None:
    server = Server(silent(), code=1)
    assert server.cause() == "the state server (GCS) ended with code 1 before it answered"
    assert server.now < 5


def test_a_server_that_starts_slowly_has_more_time() -> None:
    server = Server(silent())
    server.cause()
    assert LIMIT_S * 4 < server.now < 90


def test_a_pause_of_the_watch_is_no_silence_of_the_server() -> None:
    silence = Silence(LIMIT_S)
    assert not silence.failed(3600.0)
    silence.answered()
    assert not silence.failed(5.0)
    assert silence.failed(5.0)


@pytest.mark.parametrize("redis", [True, False])
def test_the_address_is_in_the_command_line(redis: bool) -> None:
    command = ["/ray/gcs_server", "--node-ip-address=10.0.0.1", "--gcs_server_port=6390",
               "--config_list=eyJhIjoxfQ==", *(["--redis_address=r"] if redis else [])]  # fmt: skip
    assert start_hook.watched(command) == ("10.0.0.1:6390", redis)


def test_only_the_state_server_is_watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[tuple[object, tuple[str, ...], bool]] = []

    class Started:
        process = object()

    sign = tmp_path / "watched"

    def begin(process: object, connect: Any, touch: Any, *, is_durable: bool) -> None:
        touch()
        begun.append((process, connect.args, is_durable))

    monkeypatch.setattr(gcs_watch, "begin", begin)
    start = start_hook._with_watch(lambda _command: Started, sign)
    flags = ["--node-ip-address=h", "--gcs_server_port=1"]
    assert start(["/ray/raylet/raylet", *flags]) is start(["/ray/gcs_server", *flags]) is Started
    assert begun == [(Started.process, ("h:1",), False)]
    assert sign.exists()
