"""One source followed into one dataset, with failures at every step."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from caraway_acceleration.changes import following
from caraway_acceleration.changes.following import Following, Timing
from caraway_acceleration.changes.ingesting import ChangesRefusedError, SourcePositions
from caraway_acceleration.refresh.backoff import DELAYS
from caraway_core.changes import Changes, Op, log_schema
from caraway_core.errors import CarawayError, DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import PositionLostError, SourceBatch
from caraway_plugins.changes.target import ChangeTarget
from tests.kit.panics import Panic
from tests.kit.turns import turn

SCHEMA = pa.schema([pa.field("id", pa.int64())])
NAME = TableName("d")


def changes(*ids: int) -> Changes:
    rows = [{"id": id_, "caraway_op": int(Op.UPSERT), "caraway_offset": None} for id_ in ids]
    return Changes(pa.Table.from_pylist(rows, schema=log_schema(SCHEMA)), len(ids))


def batch(number: int, *ids: int) -> SourceBatch:
    return SourceBatch(changes(*(ids or (number,))), str(number))


@dataclass
class Source:
    """Yields batches 1, 2, ... after a position, up to the number that the test allows."""

    batches_: list[SourceBatch] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    begun: list[str | None] = field(default_factory=list)
    confirmed: list[str] = field(default_factory=list)
    read: int = 0
    is_closed: bool = False
    more: asyncio.Event = field(default_factory=asyncio.Event)

    async def schema(self) -> pa.Schema:
        return SCHEMA

    async def primary_key(self) -> tuple[str, ...]:
        return ("id",)

    async def batches(self, position: str | None) -> AsyncGenerator[SourceBatch, None]:
        self.begun.append(position)
        start = 0 if position is None else int(position)
        for each in self.batches_[start:]:
            self.read += 1
            yield each
        if self.failures:
            raise self.failures.pop(0)
        await asyncio.Event().wait()

    async def confirm(self, position: str) -> None:
        self.confirmed.append(position)

    async def aclose(self) -> None:
        self.is_closed = True


@dataclass
class Dataset:
    """Records applied changes and their position; rejects batches on demand."""

    ids: list[int] = field(default_factory=list)
    wholes: list[bool] = field(default_factory=list)
    at: str | None = None
    refusals: list[CarawayError] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def target(self, name: TableName) -> ChangeTarget:
        raise AssertionError("a source reads its events itself")

    async def apply(
        self,
        name: TableName,
        changes: Changes,
        request_id: str | None,
        deadline_s: float,
        *,
        source: SourcePositions | None = None,
    ) -> int:
        await self.gate.wait()
        if self.refusals:
            raise self.refusals.pop(0)
        assert source is not None and source.after == self.at
        self.ids += changes.rows.column("id").to_pylist()
        self.at = source.position
        self.wholes.append(source.is_whole)
        return changes.received

    async def position(self, name: TableName) -> str | None:
        return self.at


@dataclass
class Bench:
    source: Source = field(default_factory=Source)
    dataset: Dataset = field(default_factory=Dataset)
    told: list[str] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    is_mine: bool = True
    asked: int = 0
    released: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dataset.gate.set()

    async def acquire(self) -> bool:
        self.asked += 1
        return self.is_mine

    async def release(self) -> None:
        self.released.append(self.source.is_closed)

    def tell(self, error: CarawayError | None) -> None:
        self.told.append(error.message if error else "")

    async def sleep(self, seconds: float) -> None:
        """Yield to other tasks without waiting; renewals of the claim are not recorded."""
        if seconds != 5.0:
            self.waited.append(seconds)
        await turn()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Following]:
        made = Following(
            NAME, self.source, self.dataset, self, self.tell,
            Timing(sleep=self.sleep, chance=lambda: 0.0),
        )  # fmt: skip
        task = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


async def until(bench: Bench, ids: list[int]) -> None:
    async with asyncio.timeout(60):
        while bench.dataset.ids != ids:
            await turn()


async def test_batches_are_applied_in_order_and_then_confirmed() -> None:
    bench = Bench(Source([batch(1, 10, 11), batch(2)]))
    async with bench.running() as running:
        await until(bench, [10, 11, 2])
        async with asyncio.timeout(60):
            while bench.source.confirmed != ["1", "2"]:
                await turn()
        await turn()
        assert running.is_whole
    assert bench.told == ["", ""] and bench.source.is_closed
    assert bench.released == [True]


async def test_the_lag_is_the_age_of_the_last_applied_change() -> None:
    made_at = datetime.now(UTC) - timedelta(hours=1)
    bench = Bench(Source([replace(batch(1), made_at=made_at), batch(2)]))
    bench.dataset.gate.clear()
    async with bench.running() as running:
        await turn()
        assert running.behind_s is None
        bench.dataset.gate.set()
        await until(bench, [1, 2])
        await turn()
        assert running.behind_s is not None and 3_600 <= running.behind_s < 7_200


async def test_one_batch_is_read_ahead_and_no_more() -> None:
    bench = Bench(Source([batch(number) for number in range(1, 10)]))
    bench.dataset.gate.clear()
    async with bench.running():
        for _ in range(50):
            await turn()
        # One is being applied, one is queued, and one waits for room in the queue.
        assert bench.source.read == 3
        assert bench.source.confirmed == []


async def test_it_begins_where_the_dataset_is() -> None:
    bench = Bench(Source([batch(1), batch(2), batch(3)]), Dataset(at="2"))
    async with bench.running():
        await until(bench, [3])
    assert bench.source.begun == ["2"]


async def test_a_failing_source_is_retried_with_growing_delays() -> None:
    away: list[BaseException] = [DatasetError("unavailable", "away") for _ in range(3)]
    bench = Bench(Source([], away))
    async with bench.running():
        async with asyncio.timeout(60):
            while len(bench.source.begun) < 4:
                await turn()
    assert bench.told == ["away"] * 3 and bench.waited == [DELAYS.delay_s(n) for n in (1, 2, 3)]


RAISED = (asyncio.CancelledError(), Panic(), KeyError("x"), BaseExceptionGroup("", [Panic()]))


@pytest.mark.parametrize("raised", RAISED, ids=lambda each: type(each).__name__)
async def test_a_source_that_raises_anything_is_retried(raised: BaseException) -> None:
    """A source that raised CancelledError was once silently no longer followed."""
    bench = Bench(Source([], [raised]))
    bench.dataset.gate.set()
    async with bench.running():
        async with asyncio.timeout(60):
            while len(bench.source.begun) < 2:
                await turn()
    (reason,) = bench.told
    assert "the reason is in the log" in reason


async def test_what_was_read_before_a_failure_is_applied() -> None:
    bench = Bench(Source([batch(1), batch(2)], [DatasetError("schema", "bad event")]))
    bench.dataset.gate.clear()
    async with bench.running():
        for _ in range(50):
            await turn()
        assert bench.told == []
        bench.dataset.gate.set()
        async with asyncio.timeout(60):
            while "bad event" not in bench.told:
                await turn()
    assert bench.dataset.ids == [1, 2] and bench.waited[:1] == [DELAYS.delay_s(1)]


async def test_a_rejected_batch_is_reported_and_retried() -> None:
    bench = Bench(Source([batch(1), batch(2)]))
    bench.dataset.refusals = [ChangesRefusedError("no such column")]
    async with bench.running():
        await until(bench, [1, 2])
        await turn()
    assert bench.told == ["no such column", "", ""]
    assert bench.source.begun == [None, None]


async def test_a_lost_position_causes_a_full_load() -> None:
    bench = Bench(Source([batch(1), batch(2)]), Dataset(at="2"))
    bench.source.failures = [PositionLostError("the slot is gone")]
    async with bench.running():
        await until(bench, [1, 2])
    assert bench.source.begun == ["2", None]
    assert bench.told[0] == "the slot is gone"


async def test_a_lost_position_is_remembered_over_other_failures() -> None:
    bench = Bench(Source([batch(1), batch(2)]), Dataset(at="2"))
    bench.source.failures = [PositionLostError("the slot is gone")]
    bench.dataset.refusals = [DatasetError("unavailable", "full")]
    async with bench.running():
        await until(bench, [1, 2])
    assert bench.source.begun == ["2", None, None]


async def test_batches_of_a_load_are_joined_but_not_without_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "JOINED_ROWS", 4)
    pages = [SourceBatch(changes(n, 100 + n), str(n), is_whole=n == 5) for n in range(1, 6)]
    bench = Bench(Source([*pages, batch(6), batch(7)]))
    async with bench.running():
        await until(bench, [1, 101, 2, 102, 3, 103, 4, 104, 5, 105, 6, 7])
    assert bench.dataset.wholes == [False, False, True, True, True]


async def test_what_was_read_of_a_load_before_a_failure_is_applied() -> None:
    pages = [SourceBatch(changes(n), str(n), is_whole=False) for n in (1, 2)]
    bench = Bench(Source(pages, [DatasetError("unavailable", "away")]))
    async with bench.running():
        async with asyncio.timeout(60):
            while "away" not in bench.told:
                await turn()
    assert bench.dataset.ids == [1, 2] and bench.dataset.wholes == [False]


async def test_recovery_of_a_source_is_reported_at_once() -> None:
    bench = Bench(Source([SourceBatch(changes(), "1", is_whole=False)]), Dataset(at="0"))
    async with bench.running():
        async with asyncio.timeout(60):
            while bench.told != [""]:
                await turn()


async def test_a_batch_without_rows_moves_the_position() -> None:
    bench = Bench(Source([SourceBatch(changes(), "1"), batch(2)]))
    async with bench.running():
        await until(bench, [2])
    assert bench.source.begun == [None] and bench.dataset.at == "2"


async def test_an_empty_batch_only_reports_health() -> None:
    bench = Bench(Source([batch(1), SourceBatch(changes(), "1")]), Dataset(at="1"))
    bench.dataset.refusals = [AssertionError("nothing is to be applied")]  # type: ignore[list-item]
    async with bench.running():
        async with asyncio.timeout(60):
            while bench.told != [""]:
                await turn()


async def test_a_scheduler_without_the_claim_waits_for_it() -> None:
    bench = Bench(Source([batch(1)]), is_mine=False)
    async with bench.running():
        async with asyncio.timeout(60):
            while bench.asked < 3:
                await turn()
        assert bench.source.begun == []
        bench.is_mine = True
        await until(bench, [1])
        bench.is_mine = False
        async with asyncio.timeout(60):
            asked = bench.asked
            while bench.asked < asked + 3:
                await turn()
        bench.source.batches_.append(batch(2))
        for _ in range(20):
            await turn()
        assert bench.dataset.ids == [1] and bench.source.begun == [None]


async def test_an_internal_error_is_logged_and_retried() -> None:
    bench = Bench(Source([batch(1)]))
    bench.dataset.refusals = [KeyError("hidden")]  # type: ignore[list-item]
    async with bench.running():
        await until(bench, [1])
    assert "in the log" in bench.told[0] and "hidden" not in bench.told[0]
