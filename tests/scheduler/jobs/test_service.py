"""The job service of one scheduler, with a real engine and real stores."""

import asyncio
import re
from pathlib import Path

import pytest

from caraway_core.errors import (
    InvalidQueryError,
    JobConflictError,
    JobNotFoundError,
    OverloadedError,
    ShuttingDownError,
)
from caraway_core.ids import JobId
from tests.kit.deadlines import eventually
from tests.kit.job_schedulers import ADA, BOB, site
from tests.kit.panics import Panic
from tests.scheduler.jobs.services import NUMBERS, nothing_is_left


async def test_answer_is_stored_in_chunks_and_read_back(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.submit(NUMBERS)
        assert (job.status, job.epoch, job.totals) == ("PENDING", 1, None)
        job = await one.ended(job.job_id)
        assert job.status == "SUCCEEDED", job.error
        assert job.started_at and job.completed_at and job.expires_at
        assert job.created_at <= job.started_at <= job.completed_at
        assert (job.expires_at - job.completed_at).total_seconds() == 3600
        assert job.totals is not None
        assert job.totals.rows == 25_000
        table = await one.rows(job)
        assert sorted(table["n"].to_pylist()) == list(range(1, 25_001))
        manifest = await one.jobs.service.manifest(job)
        assert job.totals.chunks == len(manifest.chunks) >= 2


async def test_answer_without_rows_has_a_schema_and_no_chunks(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.ended((await one.submit("SELECT 1 AS a WHERE false")).job_id)
        assert job.status == "SUCCEEDED"
        table = await one.rows(job)
        assert table.column_names == ["a"]
        assert table.num_rows == 0


async def test_parameters_are_bound(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.submit("SELECT $1 + 1 AS a, $2 AS b", parameters={"1": 41, "2": "x"})
        job = await one.ended(job.job_id)
        assert (await one.rows(job)).to_pylist() == [{"a": 42, "b": "x"}]


@pytest.mark.parametrize(
    ("sql", "parameters", "code", "text"),
    [
        ("SELECT $1", {}, "PARAMETER_BINDING_FAILED", r"no value for parameter \$1"),
        ("SELECT 1", {"x": 1}, "PARAMETER_BINDING_FAILED", r"does not use parameter \$x"),
        ("SELECT $1", {"1": {"a": 1}}, "PARAMETER_BINDING_FAILED", "object cannot be bound"),
        ("SELEC 1", {}, "SUBMISSION_FAILED", "SELEC"),
        ("SELECT * FROM nowhere", {}, "SUBMISSION_FAILED", "nowhere"),
        (
            "SELECT 1 / (value - 20000) AS a FROM generate_series(1, 25000)",
            {},
            "EXECUTION_FAILED",
            "[Dd]ivi",
        ),
    ],
)
async def test_statement_that_fails_says_why(
    tmp_path: Path, sql: str, parameters: dict[str, object], code: str, text: str
) -> None:

    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.ended((await one.submit(sql, parameters=parameters)).job_id)
        assert job.status == "FAILED"
        assert job.error is not None
        assert job.error.code == code
        assert re.search(text, job.error.message), job.error.message
        await nothing_is_left(place)


async def test_answer_over_maximum_size_fails_and_leaves_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.ended((await one.submit(NUMBERS, maximum_size=1000)).job_id)
        assert job.error is not None
        assert job.error.code == "EXECUTION_FAILED"
        assert "maximum_size" in job.error.message
        await nothing_is_left(place)


async def test_job_stops_at_its_time_limit(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        one.dispatch.may_begin.clear()
        job = await one.ended((await one.submit("SELECT 1", timeout_s=0.05)).job_id)
        assert job.error is not None
        assert job.error.code == "TIMEOUT"
        assert "timeout_seconds of 0.05" in job.error.message


@pytest.mark.parametrize(
    "raised",
    [
        ZeroDivisionError("secret"),
        asyncio.CancelledError("secret"),
        Panic("secret"),
        BaseExceptionGroup("secret", [Panic()]),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_unexpected_failure_is_reported_without_internals(
    tmp_path: Path, raised: BaseException
) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        one.dispatch.fails = [raised]
        job = await one.ended((await one.submit("SELECT 1")).job_id)
        assert job.error is not None
        assert job.error.code == "INTERNAL"
        assert "secret" not in job.error.message
        assert job.job_id in job.error.message


async def test_job_waits_for_executors(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        one.dispatch.fails = [OverloadedError("no executor is ready", 1)]
        job = await one.ended((await one.submit("SELECT 1")).job_id)
        assert job.status == "SUCCEEDED"
        assert len(one.dispatch.executed) == 2


async def test_cancel_stops_a_running_job_and_is_final(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        one.dispatch.may_begin.clear()
        job = await one.submit("SELECT 1")
        await one.dispatch.began.wait()
        cancelled = await one.jobs.service.cancel(ADA.id, job.job_id)
        assert cancelled.status == "CANCELLED"
        assert cancelled.error is not None
        assert cancelled.error.code == "CANCELLED"

        async def idle() -> bool:
            return one.jobs.scheduler.running == 0

        await eventually(idle, "the work has stopped")
        again = await one.jobs.service.cancel(ADA.id, job.job_id)
        assert again == await one.jobs.service.find(ADA.id, job.job_id) == cancelled


async def test_cancelled_before_its_turn_a_job_never_runs(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler(begins=False)
        job = await one.submit("SELECT 1")
        await one.jobs.service.cancel(ADA.id, job.job_id)
        assert one.jobs.scheduler.queued == 0
        other = await one.submit("SELECT 2")
        one.jobs.begin_jobs()
        await one.ended(other.job_id)
        assert [statement.sql for statement in one.dispatch.executed] == ["SELECT 2"]


async def test_jobs_of_other_principals_do_not_exist(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.submit("SELECT 1")
        service = one.jobs.service
        for asking in (
            service.find(BOB.id, job.job_id),
            service.cancel(BOB.id, job.job_id),
            service.wait(BOB.id, job.job_id, 1),
            service.find(ADA.id, JobId("../x")),
        ):
            with pytest.raises(JobNotFoundError):
                await asking
        assert await service.list(BOB.id, None, 10) == []


async def test_list_is_newest_first_and_filters(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        good = await one.submit("SELECT 1")
        bad = await one.submit("SELEC")
        for job in (good, bad):
            await one.ended(job.job_id)
        service = one.jobs.service
        assert [job.job_id for job in await service.list(ADA.id, None, 10)] == [
            bad.job_id,
            good.job_id,
        ]
        assert [job.job_id for job in await service.list(ADA.id, None, 1)] == [bad.job_id]
        assert [job.job_id for job in await service.list(ADA.id, "SUCCEEDED", 10)] == [good.job_id]
        assert one.jobs.replica.counts == {"SUCCEEDED": 1, "FAILED": 1}
        assert dict(one.jobs.tallies.finished) == {("SUCCEEDED",): 1, ("FAILED",): 1}


async def test_list_has_what_another_scheduler_took_and_reads_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path) as place:
        one, other = await place.scheduler("one"), await place.scheduler("two")
        listed = one.jobs.service
        for _ in range(3):
            job = await other.submit("SELECT 1")
            assert (await listed.list(ADA.id, None, 1))[0].job_id == job.job_id
            await other.ended(job.job_id)
        await listed.list(ADA.id, None, 1)
        monkeypatch.setattr(one.store, "scan", None)
        assert len(await listed.list(ADA.id, None, 10)) == 3


async def test_wait_ends_with_the_job_or_the_time(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        one.dispatch.may_begin.clear()
        job = await one.submit("SELECT 1")
        assert (await one.jobs.service.wait(ADA.id, job.job_id, 0.05)).status in (
            "PENDING",
            "RUNNING",
        )
        waiting = asyncio.create_task(one.jobs.service.wait(ADA.id, job.job_id, 60))
        await one.dispatch.began.wait()
        one.dispatch.may_begin.set()
        assert (await waiting).status == "SUCCEEDED"


async def test_stop_ends_all_waits(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        one.dispatch.may_begin.clear()
        job = await one.submit("SELECT 1")
        waiting = asyncio.create_task(one.jobs.service.wait(ADA.id, job.job_id, 60))
        await one.dispatch.began.wait()
        await one.jobs.stop(0)
        assert (await waiting).status == "RUNNING"
        with pytest.raises(ShuttingDownError):
            await one.submit("SELECT 2")


async def test_same_idempotency_key_is_the_same_job(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        jobs = await asyncio.gather(*(one.submit("SELECT 1", key="k") for _ in range(5)))
        assert len({job.job_id for job in jobs}) == 1
        await one.ended(jobs[0].job_id)
        assert len(one.dispatch.executed) == 1
        with pytest.raises(JobConflictError):
            await one.submit("SELECT 2", key="k")
        assert (await one.submit("SELECT 2", by=BOB, key="k")).job_id != jobs[0].job_id


async def test_queue_is_bounded(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler(max_queued=4, begins=False)
        for _ in range(2):
            await one.submit("SELECT 1")
        with pytest.raises(OverloadedError, match="of this key"):
            await one.submit("SELECT 1")
        for _ in range(2):
            await one.submit("SELECT 1", by=BOB)
        with pytest.raises(OverloadedError, match="max_queued"):
            await one.submit("SELECT 1", by=BOB)
        assert len(await one.jobs.service.list(ADA.id, None, 10)) == 2


async def test_keys_take_turns(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler(max_concurrent=1, begins=False)
        for number in range(3):
            await one.submit(f"SELECT {number} AS ada")
        last = [await one.submit(f"SELECT {number} AS bob", by=BOB) for number in range(2)]
        one.jobs.begin_jobs()
        await one.ended(last[-1].job_id, BOB)
        ran = [statement.sql[-3:] for statement in one.dispatch.executed]
        assert ran[:4] == ["ada", "bob", "ada", "bob"]


async def test_empty_statement_is_refused(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        with pytest.raises(InvalidQueryError):
            await one.submit("  ")


async def test_work_is_in_the_background_and_not_more_than_allowed(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler(max_concurrent=1)
        one.dispatch.may_begin.clear()
        jobs = [await one.submit(f"SELECT {number}") for number in range(3)]
        await one.dispatch.began.wait()
        assert (one.jobs.scheduler.running, one.jobs.scheduler.queued) == (1, 2)
        one.dispatch.may_begin.set()
        for job in jobs:
            await one.ended(job.job_id)
        assert all(statement.in_background for statement in one.dispatch.executed)


async def test_history_records_jobs(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.ended((await one.submit("SELECT 1")).job_id)

        async def told() -> bool:
            return bool(one.history.table(None).num_rows == 1)

        await eventually(told, "the job is in the history")
        row = one.history.table(None).select(["task", "labels"]).to_pylist()[0]
        assert row["task"] == "sql_query"
        assert dict(row["labels"])["job_id"] == job.job_id
