"""Plans of scans give out files while their export runs, on any scheduler, to their owner only."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from caraway_core.errors import CarawayError, ExecutionError, OverloadedError, UnavailableError
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import StoredChunk, begun, in_order
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace
from caraway_gateway.iceberg import exporting, plan_pages, scan_plans, scan_runs
from caraway_gateway.iceberg.exporting import ExportedRows
from caraway_gateway.iceberg.plan_pages import NoPlanError, NoPlanTaskError, PlanOwner
from caraway_gateway.iceberg.scan_plans import ScanPlans
from caraway_gateway.iceberg.scan_runs import ScanExport
from caraway_plugins.stores import published
from caraway_serving.errors import RefusedRequestError
from tests.kit.deadlines import eventually

ADA, TABLE = "ada", TableName("t")
FILTER = {"type": "true"}


class FakeExports:
    """Exports that store what a test says."""

    def __init__(self) -> None:
        self.words: list[StoredChunk] = []
        self.began = 0
        self.ended = 0
        self._on_words: list[Any] = []
        self._end = asyncio.Event()
        self._failure: CarawayError | None = None

    async def export(self, *given: Any, on_word: Any) -> ExportedRows:
        self.began += 1
        folder = given[3]
        self._on_words.append(on_word)
        on_word(self.words)
        try:
            await self._end.wait()
        finally:
            self.ended += 1
        if self._failure is not None:
            raise self._failure
        files = exporting.files(folder, in_order(self.words))
        return ExportedRows(pa.schema([]), ResultPlace("file", "/"), folder, files)

    def store(self, number: int, task: int = 0, attempt: int = 0) -> None:
        chunk = ChunkInfo(number, 10, 100, f"{number:064x}")
        self.say(StoredChunk(task, attempt, chunk))

    def say(self, word: StoredChunk) -> None:
        self.words.append(word)
        for on_word in self._on_words:
            on_word(self.words)

    def end(self, failure: CarawayError | None = None) -> None:
        self._failure = failure
        self._end.set()


class Clock:
    now_s = 0.0
    step_s = 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> FakeExports:
    found = FakeExports()
    monkeypatch.setattr(exporting, "export", found.export)
    monkeypatch.setattr(scan_runs, "FIRST_S", 0.0)
    monkeypatch.setattr(scan_runs, "_GATHER_S", 0.0)
    monkeypatch.setattr(scan_plans, "_LOOK_S", 0.001)
    return found


class Served:
    """The plans of one scheduler, and a place that it shares with others."""

    def __init__(self, folder: Path) -> None:
        self.at = ResultPlace("file", str(folder))
        self.place = published.opened(self.at)
        self.clock = Clock()
        self.plans = ScanPlans(cast(Dispatch, None), self.clock)

    async def plan(self, principal: str = ADA, **given: Any) -> dict[str, Any]:
        owner = PlanOwner(principal, TABLE, FILTER)
        export = ScanExport(Statement("SELECT 1", {}), self.at, self.place, owner)
        return await self.plans.export(export, may_wait=given.pop("may_wait", False))

    async def fetch(self, token: str, principal: str = ADA) -> dict[str, Any]:
        return await self.plans.fetch(self.place, token, principal, TABLE)

    async def look(self, plan_id: str) -> dict[str, Any]:
        return await self.plans.look(self.place, plan_id, ADA, TABLE)


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Served]:
    one = Served(folder)
    try:
        yield one
    finally:
        await one.plans.aclose()


def counts(answer: dict[str, Any]) -> list[int]:
    assert all(each["residual-filter"] == FILTER for each in answer["file-scan-tasks"])
    return [each["data-file"]["record-count"] for each in answer["file-scan-tasks"]]


async def test_files_are_given_out_while_others_are_written(
    tmp_path: Path, exports: FakeExports
) -> None:
    async with served(tmp_path) as here, served(tmp_path) as other:
        first = await here.plan()
        assert (first["status"], counts(first)) == ("completed", [])
        (token,) = first["plan-tasks"]
        exports.store(0)
        second = await here.fetch(token)
        assert counts(second) == [10]
        # It may be requested again, and on another scheduler.
        assert await here.fetch(token) == await other.fetch(token) == second
        waiting = asyncio.ensure_future(other.fetch(second["plan-tasks"][0]))
        exports.store(1)
        exports.end()
        third = await waiting
        found = [third]
        while found[-1]["plan-tasks"]:
            found.append(await other.fetch(found[-1]["plan-tasks"][0]))
        assert [each for one in found for each in counts(one)] == [10]
        names = {each["data-file"]["file-path"] for one in (second, *found)
                 for each in one["file-scan-tasks"]}  # fmt: skip
        assert len(names) == 2


async def test_a_plan_that_a_client_waits_for_is_asked_for(
    tmp_path: Path, exports: FakeExports
) -> None:
    async with served(tmp_path) as here:
        submitted = await here.plan(may_wait=True)
        assert submitted == {"status": "submitted", "plan-id": submitted["plan-id"]}
        plan_id = submitted["plan-id"]
        assert (await here.look(plan_id))["status"] == "submitted"
        exports.store(0)

        async def has_files() -> dict[str, Any] | None:
            found = await here.look(plan_id)
            return found if found["status"] == "completed" else None

        partly = await eventually(has_files, "a file is there")
        assert partly is not None and counts(partly) == [10]
        exports.end()
        assert counts(await here.fetch(partly["plan-tasks"][0])) == []

        async def is_whole() -> bool:
            return "plan-tasks" not in await here.look(plan_id)

        await eventually(is_whole, "the plan is complete")


async def test_a_short_export_is_answered_as_a_whole(
    tmp_path: Path, exports: FakeExports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_runs, "FIRST_S", 60.0)
    async with served(tmp_path) as here:
        exports.store(0)
        exports.end()
        whole = await here.plan(may_wait=True)
        assert (whole["status"], counts(whole)) == ("completed", [10])
        assert not whole.keys() & {"plan-id", "plan-tasks"}
        (plan_id,) = here.place.folders(plan_pages.FOLDER)
        # Exported files belong to the key, also if no page is requested.
        assert plan_pages.owner(here.place, plan_id, ADA, TABLE).filter == FILTER


async def test_a_failure_is_that_of_the_statement(tmp_path: Path, exports: FakeExports) -> None:
    async with served(tmp_path) as here:
        (token,) = (await here.plan())["plan-tasks"]
        exports.end(ExecutionError("the disk burns"))
        with pytest.raises(RefusedRequestError, match="the disk burns") as refused:
            await here.fetch(token)
        assert refused.value.status == 500
        failed = await here.look(token.partition(".")[0])
        assert failed == {"status": "failed", "error": {"message": "the disk burns", "code": 500}}
        with pytest.raises(ExecutionError, match="the disk burns"):
            for _ in range(3):  # Its page may be written before the failure is there.
                await here.plan()


async def test_files_of_an_executor_that_was_lost_are_not_read_twice(
    tmp_path: Path, exports: FakeExports
) -> None:
    async with served(tmp_path) as here:
        exports.store(0)
        first = await here.plan()
        assert counts(first) == [10]
        exports.say(begun(0, 1))
        exports.store(1, attempt=1)
        with pytest.raises(RefusedRequestError, match="plan it again") as refused:
            await here.fetch(first["plan-tasks"][0])
        assert refused.value.status == 503


async def test_plans_are_for_their_owners(tmp_path: Path, exports: FakeExports) -> None:
    async with served(tmp_path) as here:
        exports.store(0)
        answer = await here.plan()
        (token,) = answer["plan-tasks"]
        exports.end()
        with pytest.raises(NoPlanTaskError):
            await here.fetch(token, "bob")
        with pytest.raises(NoPlanError):
            await here.plans.look(here.place, answer["plan-id"], "bob", TABLE)
        with pytest.raises(NoPlanError):
            await here.plans.cancel(here.place, answer["plan-id"], ADA, TableName("other"))
        for wrong in ("", "x.1", f"../{token}", f"{token}9", f"{answer['plan-id']}.77", 5, None):
            with pytest.raises(NoPlanTaskError):
                await here.plans.fetch(here.place, wrong, ADA, TABLE)
        for wrong in ("..", "../plans", "", answer["plan-id"].upper()):
            with pytest.raises(NoPlanError):
                await here.look(wrong)


async def test_a_plan_that_is_cancelled_stops_its_export(
    tmp_path: Path, exports: FakeExports
) -> None:
    async with served(tmp_path) as here, served(tmp_path) as other:
        answer = await here.plan()
        await here.plans.cancel(here.place, answer["plan-id"], ADA, TABLE)
        assert await other.look(answer["plan-id"]) == {"status": "cancelled"}
        with pytest.raises(NoPlanTaskError):
            await other.fetch(answer["plan-tasks"][0])

        async def is_over() -> bool:
            return exports.ended == exports.began

        await eventually(is_over, "the export is over")
        # Another scheduler notes it; the one that exports looks when it writes a page.
        again = await here.plan()
        await other.plans.cancel(other.place, again["plan-id"], ADA, TABLE)
        exports.store(0)
        await eventually(is_over, "the export is over")


async def test_plans_that_are_not_fetched_end(tmp_path: Path, exports: FakeExports) -> None:
    async with served(tmp_path) as here:
        answer = await here.plan()
        exports.store(0)
        (token,) = answer["plan-tasks"]
        await here.fetch(token)
        here.clock.now_s = scan_runs.KEPT_S + 1
        exports.store(1)

        async def is_cancelled() -> bool:
            return plan_pages.is_cancelled(here.place, answer["plan-id"])

        await eventually(is_cancelled, "the plan is over")
        assert await here.look(answer["plan-id"]) == {"status": "cancelled"}


async def test_plans_that_are_fetched_elsewhere_go_on(tmp_path: Path, exports: FakeExports) -> None:
    async with served(tmp_path) as here, served(tmp_path) as other:
        exports.store(0)
        (token,) = (await here.plan())["plan-tasks"]
        exports.store(1)
        second = await other.fetch(token)
        here.clock.now_s = scan_runs.KEPT_S + 1
        exports.store(2)
        assert counts(await other.fetch(second["plan-tasks"][0])) == [10]
        assert not plan_pages.is_cancelled(here.place, token.partition(".")[0])


async def test_one_key_has_few_plans_at_once(
    tmp_path: Path, exports: FakeExports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_plans, "_MOST_OF_ONE", 2)
    async with served(tmp_path) as here:
        for _ in range(2):
            await here.plan()
        with pytest.raises(OverloadedError, match="2 scans of this key"):
            await here.plan()
        await here.plan("bob")
        exports.end()


async def test_a_scheduler_that_is_gone_is_noticed(tmp_path: Path, exports: FakeExports) -> None:
    async with served(tmp_path) as other:
        async with served(tmp_path) as here:
            (token,) = (await here.plan())["plan-tasks"]
        other.clock.step_s = 10.0
        with pytest.raises(UnavailableError, match="is gone; plan it again"):
            await other.fetch(token)


async def test_many_files_of_a_table_are_given_out_in_pages(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        found = [{"data-file": {"file-path": str(number)}} for number in range(4_500)]
        here.place.write("u/key/tasks.json", str(found).replace("'", '"').encode())
        owner = PlanOwner(ADA, TABLE, None, "u/key/tasks.json")
        answer = await here.plans.listed(found, here.place, owner)
        given = list(answer["file-scan-tasks"])
        while answer.get("plan-tasks"):
            answer = await here.fetch(answer["plan-tasks"][0])
            given += answer["file-scan-tasks"]
            assert len(answer["file-scan-tasks"]) <= 2_000
        assert given == found
        long = PlanOwner(ADA, TABLE, {"type": "eq", "term": "s", "value": "x" * 1_000_000})
        assert long.most_tasks == 8
