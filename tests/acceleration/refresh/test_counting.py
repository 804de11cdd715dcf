"""Counts and history of refreshes, alone and with a running refresher."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_acceleration.recipes.recipes import Recipe
from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.backoff import Retries
from caraway_acceleration.refresh.counting import Counting, Ended
from caraway_acceleration.refresh.refresh_events import RunNumber
from caraway_acceleration.refresh.refresher import Refresher
from caraway_acceleration.refresh.reloading import LoadPlan
from caraway_acceleration.versions.current_version import CurrentVersion, Subject
from caraway_acceleration.versions.making import VersionMaker
from caraway_acceleration.versions.versions import VersionStore
from caraway_core.errors import ExecutionError
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace, StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_plugins.stores.folder import FolderResultStore
from caraway_plugins.stores.sqlite import SqliteStateStore
from caraway_scheduler.coordination.schedule import Timetable
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.history.tasks import TaskRecord
from caraway_serving import spans
from caraway_serving.spans import Span
from tests.kit.dataset_sources import GivenSources
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot
from tests.kit.job_schedulers import GatedDispatch
from tests.kit.runtime import running

NAME = TableName("orders")
KEY = ("orders",)
RUN = RunNumber(1)


class Clock:
    """Advances by 30 ms with each call."""

    now_ns = 0

    def __call__(self) -> int:
        self.now_ns += 30_000_000
        return self.now_ns


@pytest.mark.parametrize(
    ("ended", "error", "durations", "errors"),
    [
        (events.Succeeded(RUN, 3), None, 1, 0),
        (events.RunFailed(RUN, "the source broke off"), "the source broke off", 0, 1),
        (events.RunCancelled(RUN), "the refresh was stopped before its end", 0, 0),
    ],
)
def test_each_end_is_recorded_and_counted(
    ended: Ended, error: str | None, durations: int, errors: int
) -> None:
    told = Records()
    counting = Counting(told, Clock())
    counting.count_refresh(NAME, "append").end(ended, None)

    (record,) = told
    assert (record.task, record.input) == ("accelerated_refresh", "orders: append")
    assert record.error_message == error
    assert record.duration_ms == 30
    assert {"dataset": "orders", "mode": "append"}.items() <= record.labels.items()
    assert counting.errors == {KEY: errors}
    assert sum(counting.durations.buckets[KEY]) == durations
    assert counting.durations.sums_ms[KEY] == 30 * durations


class Records(list[TaskRecord]):
    """The records that were added, in order."""

    def add(self, record: TaskRecord) -> None:
        self.append(record)


class SeenDispatch(GatedDispatch):
    """Records the span of each statement."""

    def __init__(self, inner: InProcessDispatch) -> None:
        super().__init__(inner)
        self.spans: list[Span | None] = []

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        self.spans.append(spans.current.get())
        return await super().execute(query_id, statement)


class Kept:
    """A refresher of ten rows, its history records, and its dispatch."""

    def __init__(self, dispatch: SeenDispatch, store: SqliteStateStore, folder: Path) -> None:
        place = ResultPlace("file", str(folder / "datasets"))
        self.told = Records()
        self.counting = Counting(self.told)
        self.dispatch = dispatch
        settings = events.RefreshSettings(retries=Retries(False, 0))
        self.refresher = Refresher(
            LoadPlan(NAME, Timetable(), settings, Recipe(NAME)),
            CurrentVersion(
                Subject(NAME, "origin"),
                VersionMaker(dispatch, place),
                VersionStore(store, "one"),
                FolderResultStore.at(place),
                _show,
                lambda: datetime.now(UTC),
            ),
            lambda *_: None,
            GivenSources(pa.schema([("id", pa.int64())])),
            counting=self.counting,
        )

    def ask(self) -> None:
        self.refresher.ask(events.RefreshAsked())

    async def tells(self, count: int) -> None:
        async def look() -> bool:
            return len(self.told) == count

        await eventually(look, f"{count} refreshes are told of")


async def _show(_name: TableName, _table: StoredTable) -> None:
    pass


@asynccontextmanager
async def keeping(folder: Path) -> AsyncIterator[Kept]:
    """Yield a running refresher that has loaded its first version."""
    async with AsyncExitStack() as stack:
        store = SqliteStateStore(folder / "state.db")
        stack.push_async_callback(store.aclose)
        executor = LocalExecutor(EngineSettings(1, None))
        dispatch = SeenDispatch(InProcessDispatch(executor, ExecutorId("one"), 1))
        stack.push_async_callback(dispatch.aclose)
        source = memory(id=pa.array(range(10), pa.int64()))
        await dispatch.install(snapshot({"caraway_source.orders": source}))
        kept = Kept(dispatch, store, folder)
        working = asyncio.create_task(kept.refresher.run())
        try:
            kept.refresher.source_loaded()
            await kept.tells(1)
            yield kept
        finally:
            working.cancel()
            await asyncio.wait((working,))


async def test_refresher_records_its_refreshes_with_their_versions(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        kept.dispatch.fails = [ExecutionError("the source broke off")]
        kept.ask()
        await kept.tells(2)
        kept.ask()
        await kept.tells(3)
        told = kept.told
        assert [record.error_message for record in told] == [None, "the source broke off", None]
        assert [record.labels.get("version") for record in told] == ["1", None, "2"]
        assert [record.labels.get("rows") for record in told] == ["10", None, "10"]
        assert kept.counting.errors == {KEY: 1}
        assert sum(kept.counting.durations.buckets[KEY]) == 2


async def test_work_of_a_refresh_is_a_child_of_its_span(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        kept.ask()
        await kept.tells(2)
        assert kept.dispatch.spans == [record.span for record in kept.told]
        assert len({record.span.trace_id for record in kept.told}) == 2


async def test_refresh_that_ends_with_its_refresher_is_no_error(tmp_path: Path) -> None:
    async with keeping(tmp_path) as kept:
        kept.dispatch.began.clear()
        kept.dispatch.may_begin.clear()
        kept.ask()
        await kept.dispatch.began.wait()
    assert kept.told[1].error_message == "the refresh was stopped before its end"
    assert kept.counting.errors == {KEY: 0}


MANIFEST = """
    datasets:
      - {from: 'file:orders.parquet', name: plain}
      - from: file:orders.parquet
        name: orders
        acceleration: {enabled: true, refresh_retry_enabled: false}
      - from: file:orders.parquet
        name: kept
        acceleration: {enabled: true, engine: file, mode: file}
"""


async def test_metrics_page_has_versions_and_errors(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(10)}), tmp_path / "orders.parquet")
    async with running(tmp_path, MANIFEST) as runtime:

        async def shows(*lines: str) -> None:
            async def look() -> set[str]:
                page = (await runtime.metrics.get("/metrics")).text.splitlines()
                return set(page) if set(lines) <= set(page) else set()

            await eventually(look, f"the page says {lines}")

        await shows(
            'dataset_acceleration_version{dataset="orders"} 1.0',
            'dataset_acceleration_rows{dataset="orders"} 10.0',
            'dataset_acceleration_refresh_duration_ms_count{dataset="orders"} 1.0',
            'dataset_acceleration_refresh_errors_total{dataset="orders"} 0.0',
            'dataset_active_count{engine="None"} 1.0',
            'dataset_active_count{engine="arrow"} 1.0',
            'dataset_active_count{engine="file"} 1.0',
        )
        standing = runtime.services.accelerations.standing(NAME)
        assert standing.version is not None
        page = (await runtime.metrics.get("/metrics")).text
        assert f'size_bytes{{dataset="orders"}} {standing.version.size_bytes}.0' in page
        told_ms = float(page.split('last_refresh_time_ms{dataset="orders"} ')[1].split()[0])
        assert told_ms == pytest.approx(standing.version.made_at.timestamp() * 1000)

        (tmp_path / "orders.parquet").write_bytes(b"broken")
        await runtime.api.post("/v1/datasets/orders/acceleration/refresh")
        await shows(
            'dataset_acceleration_refresh_errors_total{dataset="orders"} 1.0',
            'dataset_acceleration_refresh_duration_ms_count{dataset="orders"} 1.0',
            'dataset_acceleration_version{dataset="orders"} 1.0',
            'dataset_active_count{engine="arrow"} 1.0',
        )
