"""The times of a task that is profiled, by a clock that the test moves."""

import time
from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from caraway_core.protocols.profiles import OperatorProfile, TaskProfile
from caraway_executor.answers.profiling import ProfiledStream
from tests.kit.stream_double import StreamDouble

SCHEMA = pa.schema({"n": pa.int64()})


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Rows(StreamDouble):
    """Two batches, each of which the engine computes for two seconds."""

    schema = SCHEMA
    reads_only_catalog = True
    written = None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.is_closed = False

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for number in range(2):
            self._clock.now_s += 2
            yield pa.record_batch({"n": [number]}, schema=SCHEMA)

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


async def test_time_of_the_engine_is_kept_apart_from_that_of_the_reader(clock: Clock) -> None:
    rows = Rows(clock)
    operators = (OperatorProfile("SortExec", 0, {"output_rows": 2}),)
    rows.traits.profile = lambda: TaskProfile(operators=operators)
    stream = ProfiledStream(rows, waited_s=0.5, planned_s=0.25)
    async for _ in stream:
        clock.now_s += 3
    assert stream.profile() == TaskProfile(500, 250, 10_000, 4_000, operators)
    await stream.aclose()
    assert rows.is_closed


async def test_work_that_has_no_metrics_has_times(clock: Clock) -> None:
    stream = ProfiledStream(Rows(clock), 0, 0)
    assert [batch.to_pylist() async for batch in stream] == [[{"n": 0}], [{"n": 1}]]
    assert stream.profile() == TaskProfile(0, 0, 4_000, 4_000)
