"""The switch between hosts, and clocks that are ahead."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.kit.networks import clocks_ahead
from tests.kit.networks.switch import Rules, Switch

A, B = "10.0.0.1", "10.0.0.2"


@pytest.fixture
def pipes() -> Iterator[dict[str, tuple[int, int]]]:
    made = {each: os.pipe() for each in (A, B)}
    for reader, _ in made.values():
        os.set_blocking(reader, False)
    yield made
    for ends in made.values():
        for end in ends:
            os.close(end)


def packet(source: str, target: str, text: bytes = b"text") -> bytes:
    return b"\x45" + bytes(11) + socket.inet_aton(source) + socket.inet_aton(target) + text


def switch(pipes: dict[str, tuple[int, int]]) -> Switch:
    return Switch({address: writer for address, (_, writer) in pipes.items()}, seed=1)


def received(pipes: dict[str, tuple[int, int]], address: str) -> bytes:
    try:
        return os.read(pipes[address][0], 65536)
    except BlockingIOError:
        return b""


def test_a_packet_reaches_its_receiver_alone(pipes: dict[str, tuple[int, int]]) -> None:
    switch(pipes).accept(packet(A, B), 0)
    assert received(pipes, B) == packet(A, B)
    assert received(pipes, A) == b""


def test_what_is_cut_in_one_direction_passes_in_the_other(
    pipes: dict[str, tuple[int, int]],
) -> None:
    between = switch(pipes)
    between.set(Rules(cut=((A, B),)))
    between.accept(packet(A, B), 0)
    between.accept(packet(B, A), 0)
    assert (received(pipes, A), received(pipes, B)) == (packet(B, A), b"")


def test_delayed_packets_arrive_in_their_time(pipes: dict[str, tuple[int, int]]) -> None:
    between = switch(pipes)
    between.set(Rules(delay_s=0.5))
    between.accept(packet(A, B, b"1"), 10.0)
    assert between.deliver(10.2) == pytest.approx(0.3)
    assert received(pipes, B) == b""
    between.set(Rules())
    between.accept(packet(A, B, b"2"), 10.3)
    assert between.deliver(10.5) is None
    # A packet that is sent after the delay ended does not pass those that wait.
    assert received(pipes, B) == packet(A, B, b"2") + packet(A, B, b"1")


def test_some_packets_are_lost(pipes: dict[str, tuple[int, int]]) -> None:
    between = switch(pipes)
    between.set(Rules(loss=0.5))
    for _ in range(200):
        between.accept(packet(A, B), 0)
    count = len(received(pipes, B)) // len(packet(A, B))
    assert 60 < count < 140


def test_packets_for_nobody_and_of_another_version_are_dropped(
    pipes: dict[str, tuple[int, int]],
) -> None:
    between = switch(pipes)
    between.accept(packet(A, "10.0.0.9"), 0)
    between.accept(b"\x60" + packet(A, B)[1:], 0)
    assert received(pipes, B) == b""


def test_rules_cross_a_line() -> None:
    rules = Rules(cut=((A, B),), delay_s=0.1, jitter_s=0.2, loss=0.3)
    assert Rules.parse(rules.line()) == rules


def test_a_clock_is_ahead_in_every_way_of_reading_it() -> None:
    code = (
        "import time, caraway_scheduler.jobs.runner as r; m = time.monotonic();"
        "print(time.time(), time.time_ns() / 1e9, r.datetime.now(r.UTC).timestamp(), m)"
    )
    environ = {**os.environ, **clocks_ahead.environ(600)}
    ran = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True)
    *days, monotonic = map(float, ran.stdout.split())
    plain = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time(), time.monotonic())"],
        capture_output=True, text=True,
    )  # fmt: skip
    day, later = map(float, plain.stdout.split())
    ahead = [each - day for each in days]
    assert all(300 < each <= 600 for each in ahead), ahead
    assert monotonic <= later
