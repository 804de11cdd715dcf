"""Endpoints of one answer, read at the same time."""

import threading
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from caraway.flight.endpoints import ParallelEndpoints


class FakeEndpoint:
    """Batches that wait for a barrier, so that they can only be read at the same time."""

    def __init__(self, numbers: list[int], meeting: threading.Barrier | None = None) -> None:
        self._numbers: Iterator[int] = iter(numbers)
        self._meeting = meeting
        self.is_cancelled = threading.Event()

    def read_batch(self) -> pa.RecordBatch | None:
        if self._meeting is not None:
            self._meeting.wait(30)
            self._meeting = None
        number = next(self._numbers, None)
        if number is None:
            return None
        if number < 0:
            raise ValueError("it broke")
        return pa.record_batch({"n": [number]})

    def cancel(self) -> None:
        self.is_cancelled.set()


class Endless(FakeEndpoint):
    def read_batch(self) -> pa.RecordBatch | None:
        return None if self.is_cancelled.is_set() else pa.record_batch({"n": [1]})


def one(fake: FakeEndpoint) -> FakeEndpoint:
    return fake


def numbers(endpoints: ParallelEndpoints) -> list[int]:
    found = []
    while (batch := endpoints.read_batch()) is not None:
        found += batch.column("n").to_pylist()
    return sorted(found)


def test_all_endpoints_are_read_at_once() -> None:
    meeting = threading.Barrier(3)
    fakes = [FakeEndpoint([each, each + 10], meeting) for each in range(3)]
    assert numbers(ParallelEndpoints([partial(one, each) for each in fakes])) == [
        0,
        1,
        2,
        10,
        11,
        12,
    ]


def test_further_endpoints_wait_for_a_free_thread() -> None:
    fakes = [FakeEndpoint([each]) for each in range(7)]
    opened = ParallelEndpoints([partial(one, each) for each in fakes], most_at_once=2)
    assert numbers(opened) == list(range(7))


def test_the_first_error_ends_the_others() -> None:
    broken, endless = FakeEndpoint([-1]), Endless([])
    endpoints = ParallelEndpoints([lambda: broken, lambda: endless])
    with pytest.raises(ValueError, match="it broke"):
        numbers(endpoints)
    assert endless.is_cancelled.wait(30)
    assert endpoints.read_batch() is None


def test_an_error_of_opening_is_raised() -> None:
    def refuse() -> FakeEndpoint:
        raise OSError("nobody there")

    with pytest.raises(OSError, match="nobody there"):
        numbers(ParallelEndpoints([refuse]))


def test_cancelled_it_ends() -> None:
    endless = Endless([])
    endpoints = ParallelEndpoints([lambda: endless])
    assert endpoints.read_batch() is not None
    endpoints.cancel()
    assert endless.is_cancelled.is_set()
    assert endpoints.read_batch() is None
