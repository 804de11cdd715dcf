"""The accelerated datasets of a scheduler: found by name, changed, replaced and closed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_acceleration.changes.ingesting import ChangesRefusedError
from caraway_acceleration.service import Accelerations
from caraway_core.changes import OFFSET, OP, Changes, Op, log_schema
from caraway_core.errors import CarawayError, NotFoundError
from caraway_core.ids import TableName
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

FULL, EVENTS, PLAIN, GONE = map(TableName, ("full", "events", "plain", "gone"))
MANIFEST = """
    datasets:
      - {from: 'file:rows.csv', name: full, acceleration: {enabled: true}}
      - from: cdc:events
        name: events
        columns: [{name: id, type: bigint}, {name: v, type: text}]
        acceleration: {enabled: true, primary_key: id}
      - {from: 'file:rows.csv', name: plain}
"""


class Served:
    """A runtime, and its accelerated datasets."""

    def __init__(self, runtime: Running) -> None:
        self.runtime = runtime
        self.accelerations: Accelerations = runtime.services.accelerations

    async def is_shown(self, *names: TableName) -> None:
        async def look() -> bool:
            return all(self.accelerations.shown(name) is not None for name in names)

        await eventually(look, "statements read the datasets")

    async def upsert(self, *ids: int, request: str | None = None) -> int:
        schema = log_schema(pa.schema([("id", pa.int64()), ("v", pa.string())]))
        columns = {
            "id": ids, "v": ["x"] * len(ids), OP: [Op.UPSERT] * len(ids), OFFSET: [None] * len(ids)
        }  # fmt: skip
        changes = Changes(pa.table(columns, schema=schema), len(ids))
        return await self.accelerations.apply(EVENTS, changes, request, 30.0)

    async def count(self, name: TableName) -> int:
        return int((await self.runtime.own(f"SELECT count(*) AS n FROM {name}"))[0]["n"])


@asynccontextmanager
async def serving(folder: Path, manifest: str = MANIFEST) -> AsyncIterator[Served]:
    (folder / "rows.csv").write_text("id,v\n1,a\n2,b\n")
    async with running(folder, manifest) as runtime:
        yield Served(runtime)


async def test_a_dataset_that_is_not_accelerated_is_told_from_one_that_is_not_there(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as served:
        accelerations = served.accelerations
        await served.is_shown(FULL, EVENTS)
        assert {each.refreshes.dataset for each in accelerations.standings()} == {FULL, EVENTS}
        assert accelerations.standing(FULL).refreshes.dataset == FULL
        for call in (accelerations.standing, accelerations.target, accelerations.changeable):
            with pytest.raises(CarawayError, match="is not accelerated"):
                call(PLAIN)
            with pytest.raises(NotFoundError, match="gone"):
                call(GONE)
        for refresh in (accelerations.refreshed(GONE), accelerations.refresh(GONE, {})):
            with pytest.raises(NotFoundError):
                await refresh
        assert accelerations.shown(PLAIN) is None


async def test_only_datasets_of_changes_take_changes(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.is_shown(FULL, EVENTS)
        with pytest.raises(ChangesRefusedError, match="its refresh_mode is 'full'"):
            served.accelerations.target(FULL)
        with pytest.raises(ChangesRefusedError):
            await served.accelerations.position(FULL)
        assert served.accelerations.target(EVENTS).primary_key == ("id",)
        assert await served.accelerations.position(EVENTS) is None


async def test_the_state_that_statements_read_changes_with_the_rows(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.is_shown(FULL, EVENTS)
        empty = served.accelerations.shown(EVENTS)
        assert await served.upsert(1, 2) == 2
        logged = served.accelerations.shown(EVENTS)
        assert empty is not None and logged is not None
        assert (empty[0], empty[2]) == (logged[0], logged[2]) and empty[1] != logged[1]
        assert await served.count(EVENTS) == 2
        before = served.accelerations.shown(FULL)
        await served.accelerations.refreshed(FULL)
        after = served.accelerations.shown(FULL)
        assert before is not None and after is not None and before[0] != after[0]


async def test_the_same_request_is_applied_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.is_shown(EVENTS)
        first = await served.upsert(1, request="r1")
        shown = served.accelerations.shown(EVENTS)
        assert await served.upsert(1, request="r1") == first
        assert served.accelerations.shown(EVENTS) == shown


async def test_an_acceleration_that_cannot_be_planned_is_an_error_of_its_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as served:
        await served.is_shown(FULL)
        accelerations, catalog = served.accelerations, served.accelerations.catalog
        state = catalog.datasets[FULL]
        assert state.dataset.acceleration is not None

        def refuse(*_: object) -> None:
            raise ValueError("a wrong statement")

        monkeypatch.setattr("caraway_acceleration.service.plans.plan_of", refuse)
        accelerations.accelerate_dataset(state, state.dataset.acceleration)
        assert state.error is not None
        assert state.error.message == "dataset 'full': a wrong statement"
        with pytest.raises(CarawayError):
            accelerations.standing(FULL)
        assert FULL in accelerations._named, "its rows are not collected meanwhile"


async def test_a_dataset_that_is_replaced_goes_on_and_one_that_ends_is_gone(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as served:
        await served.is_shown(FULL, EVENTS)
        await served.upsert(1)
        accelerations = served.accelerations
        state = accelerations.catalog.datasets[EVENTS]
        assert state.dataset.acceleration is not None
        accelerations.accelerate_dataset(state, state.dataset.acceleration)
        await served.is_shown(EVENTS)
        await served.upsert(2)
        assert await served.count(EVENTS) == 2
        accelerations.end(EVENTS)
        assert accelerations.shown(EVENTS) is None
        with pytest.raises(CarawayError):
            accelerations.target(EVENTS)


async def test_datasets_whose_source_statements_may_use(tmp_path: Path) -> None:
    manifest = """
    datasets:
      - {from: 'memory:a', name: written, access: read_write, columns: [{name: id, type: bigint}],
         acceleration: {enabled: true, refresh_mode: full}}
      - {from: 'file:rows.csv', name: answering, acceleration: {enabled: true,
         on_zero_results: use_source}}
      - {from: 'cdc:b', name: logged, access: read_write, columns: [{name: id, type: bigint}],
         acceleration: {enabled: true, primary_key: id}}
    """
    async with serving(tmp_path, manifest) as served:
        sources = served.accelerations.sources()
        assert sources.taking == {TableName("written")}
        assert sources.answering == {TableName("answering")}
        assert sources.logged == {TableName("logged")}
        assert served.accelerations.sources() is sources
        served.accelerations.end(TableName("answering"))
        assert served.accelerations.sources().answering == frozenset()


async def test_a_scheduler_alone_waits_for_no_other(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        assert served.accelerations.mentioned("SELECT * FROM full") == frozenset()
        assert served.accelerations.may_keep("SELECT * FROM full")
        await served.accelerations.caught_up("SELECT * FROM full")


async def test_nothing_is_found_after_the_end(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.is_shown(FULL, EVENTS)
        await served.accelerations.aclose()
        assert served.accelerations.standings() == []
        with pytest.raises(CarawayError):
            await served.upsert(3)
