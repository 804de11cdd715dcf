"""One job from its statement to its end: its stored state, its retries, and its failures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from caraway_core import errors
from caraway_core.errors import CarawayError
from caraway_core.ids import CatalogVersion, ExecutorId, TableName, new_query_id
from caraway_core.protocols.dispatch import StatementProgress
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import ResultPlace
from caraway_scheduler.jobs import runner as running
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import Job, JobRequest, StoredJob
from caraway_scheduler.jobs.replica import Replica
from caraway_scheduler.jobs.runner import JobResults, JobRun, JobRunner
from caraway_scheduler.jobs.shared import SharedJobs
from caraway_serving import spans
from tests.scheduler.jobs import making
from tests.scheduler.jobs.stepping import KEPT_S, RETENTION_S, Answer, World, play

TABLES = frozenset({TableName("notes")})
LOST = errors.AnswerCutError("the answer is cut short")
FULL = errors.DiskFullError("the disk is full")
INSERT = "INSERT INTO notes VALUES ('a')"


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the patience of the runner go by the clock of the loop."""

    def monotonic() -> float:
        with suppress(RuntimeError):
            return asyncio.get_running_loop().time()
        return 0.0

    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=monotonic))


def runner(world: World, writable: frozenset[TableName] = TABLES) -> JobRunner:
    return JobRunner(
        world.engine,  # type: ignore[arg-type] # a runner asks no more of dispatch
        lambda: (CatalogVersion(1), writable),
        SharedJobs(world.records, Replica(world.store), world.committer, KEPT_S),
        JobResults(world.results, ResultPlace("file", "/results"), timedelta(seconds=RETENTION_S)),
    )


def begun(world: World, held: StoredJob) -> JobRun:
    return runner(world).prepare(held, spans.start(None))


async def ran(world: World, job: Job | None = None) -> Job:
    """Run a job to its end, and return it as it is in the store."""
    held = await world.keep(job or making.job())
    ended = await runner(world).run_job(runner(world).prepare(held, spans.start(None)))
    standing = await world.standing(held.job)
    assert ended == standing
    return standing


def test_answer_is_stored_counted_and_kept_for_its_time() -> None:
    async def work(world: World) -> None:
        job = await ran(world)
        assert (job.status, job.attempts, job.writes) == ("SUCCEEDED", 1, False)
        assert job.totals is not None and (job.totals.rows, job.totals.chunks) == (5, 2)
        assert job.completed_at is not None
        assert job.expires_at == job.completed_at + timedelta(seconds=RETENTION_S)
        manifest = await world.records.manifest(job)
        assert manifest is not None
        assert [chunk.row_count for chunk in manifest.chunks] == [3, 2]
        rows = [world.results.rows(job.result_key, chunk) for chunk in manifest.chunks]
        assert sum(each.num_rows for each in rows) == 5
        assert world.engine.streams[0].is_closed

    play(work)


def test_statement_has_what_the_job_was_submitted_with() -> None:
    async def work(world: World) -> None:
        request = JobRequest("SELECT $a", {"a": 1}, maximum_size=10**6)
        await ran(world, making.job(principal="ada", request=request))
        (statement,) = world.engine.executed
        assert (statement.sql, statement.parameters) == ("SELECT $a", {"a": 1})
        assert statement.viewer == "ada" and statement.in_background
        assert statement.may_write and statement.writable == TABLES
        assert statement.store is not None and statement.store.most_bytes == 10**6

    play(work)


def test_key_that_may_only_read_writes_nothing() -> None:
    async def work(world: World) -> None:
        job = making.job(is_read_only=True, request=JobRequest(INSERT))
        done = await ran(world, job)
        (statement,) = world.engine.executed
        assert (statement.may_write, statement.writable) == (False, frozenset())
        assert not done.writes

    play(work)


@pytest.mark.parametrize(
    ("raised", "executed", "status", "code"),
    [
        ([LOST], 2, "SUCCEEDED", None),
        ([LOST, LOST], 3, "SUCCEEDED", None),
        ([LOST] * 3, 3, "FAILED", "EXECUTION_FAILED"),
        ([errors.CatalogMovedError(CatalogVersion(1))] * 2, 3, "SUCCEEDED", None),
        ([errors.QueryCancelledError("stopped")] * 3, 3, "FAILED", "EXECUTION_FAILED"),
        ([errors.OverloadedError("none", 1)] * 50, 51, "SUCCEEDED", None),
        ([errors.OverloadedError("none", 1)] * 500, None, "FAILED", "SCHEDULER_UNAVAILABLE"),
        ([errors.DatasetLoadingError("loading")] * 20, 21, "SUCCEEDED", None),
        ([errors.ShuttingDownError("it drains")] * 20, 21, "SUCCEEDED", None),
        ([FULL] * 5, 6, "SUCCEEDED", None),
        ([FULL] * 100, None, "FAILED", "EXECUTION_FAILED"),
        ([errors.ResultStoreAwayError("away")] * 5, 6, "SUCCEEDED", None),
        ([errors.InvalidQueryError("no such column")], 1, "FAILED", "SUBMISSION_FAILED"),
        ([errors.ExecutionError("broken")], 1, "FAILED", "EXECUTION_FAILED"),
        ([errors.ExecutorLostError(ExecutorId("e1"), "gone")], 1, "FAILED", "EXECUTION_FAILED"),
        ([KeyError("secret")], 1, "FAILED", "INTERNAL"),
        ([TimeoutError("of its own")], 1, "FAILED", "INTERNAL"),
        ([asyncio.CancelledError()], 1, "FAILED", "INTERNAL"),
    ],
    ids=lambda each: f"{len(each)} {type(each[0]).__name__}" if isinstance(each, list) else None,
)
def test_what_is_tried_again_and_what_ends_the_job(
    raised: list[BaseException], executed: int | None, status: str, code: str | None
) -> None:
    async def work(world: World) -> None:
        world.engine.script = [*raised, Answer((4,))]
        job = await ran(world)
        assert job.status == status, job.error
        assert executed is None or len(world.engine.executed) == executed
        assert (job.error.code if job.error else None) == code
        if status == "FAILED":
            assert await world.results.keys() == []
            assert job.error is not None and "secret" not in job.error.message
        else:
            assert job.totals is not None and job.totals.rows == 4

    play(work)


@pytest.mark.parametrize("raised", [LOST, FULL, errors.DatasetDamagedError(TableName("notes"))])
def test_statement_that_writes_is_not_run_twice(raised: CarawayError) -> None:
    async def work(world: World) -> None:
        world.engine.script = [raised]
        job = await ran(world, making.job(request=JobRequest(INSERT)))
        assert (job.status, job.writes) == ("FAILED", True)
        assert len(world.engine.executed) == 1

    play(work)


@pytest.mark.parametrize(
    "refused", [errors.OverloadedError("none", 1), errors.ShuttingDownError("")]
)
def test_statement_that_writes_waits_where_it_was_refused_before_it_began(
    refused: CarawayError,
) -> None:
    async def work(world: World) -> None:
        world.engine.script = [refused, refused, Answer((1,))]
        job = await ran(world, making.job(request=JobRequest(INSERT)))
        assert (job.status, len(world.engine.executed)) == ("SUCCEEDED", 3)

    play(work)


def test_patience_with_a_full_disk_is_shorter_than_with_missing_executors() -> None:
    waits: list[float] = []

    async def lasts(world: World, raised: CarawayError) -> None:
        world.engine.script = [raised]
        began = world.loop.time()
        await ran(world)
        waits.append(world.loop.time() - began)

    play(lambda world: lasts(world, FULL))
    play(lambda world: lasts(world, errors.OverloadedError("none", 1)))
    assert 50 <= waits[0] <= 61 and 590 <= waits[1] <= 601


def test_job_that_waits_says_for_what() -> None:
    async def work(world: World) -> None:
        world.engine.script = [FULL, Answer((1,))]
        held = await world.keep(making.job())
        run = begun(world, held)
        task = asyncio.create_task(runner(world).run_job(run))
        await world.settled(lambda: run.waits_for)
        assert "full" in run.current_progress().waits_for
        assert await world.results.keys() == [], "what was stored takes the room that is missing"
        await task
        assert run.current_progress().waits_for == ""

    play(work)


def test_words_after_the_first_rows_are_failures_of_the_data() -> None:
    async def work(world: World) -> None:
        world.engine.script = [Answer((2,), errors.InvalidQueryError("division by zero"))]
        job = await ran(world)
        assert job.error is not None and job.error.code == "EXECUTION_FAILED"
        assert await world.results.keys() == []

    play(work)


def test_time_limit_ends_a_job_and_removes_what_it_stored() -> None:
    async def work(world: World) -> None:
        world.engine.script = [Answer((2,), waits=asyncio.Event())]
        began = world.loop.time()
        job = await ran(world, making.job(request=JobRequest("SELECT 1", timeout_s=30)))
        assert job.error is not None and job.error.code == "TIMEOUT"
        assert "30" in job.error.message
        assert 29 <= world.loop.time() - began <= 31
        assert await world.results.keys() == [] and world.engine.streams[0].is_closed

    play(work)


def test_time_limit_counts_from_the_first_start_of_a_job_that_was_taken_over() -> None:
    async def work(world: World) -> None:
        world.engine.script = [Answer((2,), waits=asyncio.Event())]
        started = running.now() - timedelta(seconds=25)
        request = JobRequest("SELECT 1", timeout_s=30)
        job = making.job(request=request, status="RUNNING", started_at=started, attempts=1)
        began = world.loop.time()
        assert (await ran(world, job)).status == "FAILED"
        assert 3 <= world.loop.time() - began <= 6

    play(work)


def test_time_limit_that_has_passed_leaves_no_time_at_all() -> None:
    async def work(world: World) -> None:
        started = running.now() - timedelta(days=1)
        request = JobRequest("SELECT 1", timeout_s=30)
        job = await ran(world, making.job(request=request, started_at=started))
        assert job.error is not None and job.error.code == "TIMEOUT"

    play(work)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer((3, 3), attempts=(0, 0)), "FAILED"),
        (Answer((3, 3), attempts=(0, 1)), "SUCCEEDED"),
        (Answer((3,)), "SUCCEEDED"),
    ],
)
def test_size_counts_the_last_attempt_of_each_task_only(answer: Answer, status: str) -> None:
    async def work(world: World) -> None:
        world.engine.script = [answer]
        job = await ran(world, making.job(request=JobRequest("SELECT 1", maximum_size=30)))
        assert job.status == status, job.error
        if status == "FAILED":
            assert job.error is not None and "30" in job.error.message

    play(work)


def test_job_that_another_took_before_it_began_is_left_alone() -> None:
    async def work(world: World) -> None:
        held = await world.keep(making.job())
        taken = await world.committer.attempt(held, states.claimed(held.job, "two", running.now()))
        assert taken is not None
        await world.chunk(held.job.result_key)
        assert await runner(world).run_job(begun(world, held)) is None
        assert world.engine.executed == []
        assert await world.standing(held.job) == taken.job
        assert await world.results.keys() == [held.job.result_key], "an earlier run may need it"

    play(work)


def test_job_that_another_took_meanwhile_stays_theirs_and_own_rows_go() -> None:
    async def work(world: World) -> None:
        waits = asyncio.Event()
        world.engine.script = [Answer((2,), waits=waits)]
        held = await world.keep(making.job())
        task = asyncio.create_task(runner(world).run_job(begun(world, held)))
        await world.settled(lambda: world.results.chunks)
        standing = await world.held(held.job)
        taken = states.claimed(standing.job, "two", running.now())
        assert await world.committer.attempt(standing, taken) is not None
        waits.set()
        assert await task is None
        assert await world.standing(held.job) == taken
        assert await world.results.keys() == []

    play(work)


def test_rows_that_cannot_be_read_here_fail_the_job_with_a_remedy() -> None:
    async def work(world: World) -> None:
        async def elsewhere(key: str, chunk: ChunkInfo) -> AsyncIterator[Any]:
            raise errors.ResultStoreError("no such file")
            yield

        world.results.read_chunk = elsewhere  # type: ignore[method-assign]
        job = await ran(world)
        assert job.error is not None and job.error.code == "FETCHING_RESULTS_FAILED"
        assert "state_location" in job.error.message

    play(work)


def test_failure_to_remove_rows_does_not_hide_the_failure_of_the_job() -> None:
    async def work(world: World) -> None:
        async def refuse(key: str) -> None:
            raise errors.ResultStoreAwayError("away")

        world.results.delete = refuse  # type: ignore[method-assign]
        world.engine.script = [errors.ExecutionError("broken")]
        job = await ran(world)
        assert job.error is not None and "broken" in job.error.message

    play(work)


def test_failed_job_is_forgotten_by_itself_and_a_successful_one_is_not() -> None:
    async def work(world: World) -> None:
        await ran(world, making.job("A-1"))
        world.engine.script = [errors.ExecutionError("broken")]
        await ran(world, making.job("A-2"))
        ttls = {key.rpartition("/")[2]: ttl for key, ttl in world.store.ttls.items()}
        assert (ttls["A-1"], ttls["A-2"]) == (None, KEPT_S)

    play(work)


@pytest.mark.parametrize("step", range(1, 31))
def test_cancelled_at_any_await_a_job_stands_as_it_was_and_never_fails(step: int) -> None:
    """The job goes on elsewhere, or after a restart; its promised chunks exist."""

    async def work(world: World) -> None:
        held = await world.keep(making.job())
        task = asyncio.create_task(runner(world).run_job(begun(world, held)))
        for _ in range(step):
            await asyncio.sleep(0)
            await world.loop.step()
        task.cancel()
        await asyncio.wait((task,))
        job = await world.standing(held.job)
        assert job.status in ("PENDING", "RUNNING", "SUCCEEDED")
        if job.status == "SUCCEEDED":
            manifest = await world.records.manifest(job)
            assert manifest is not None
            assert all(world.results.rows(job.result_key, each) for each in manifest.chunks)
        else:
            claimed = states.claimed(job, "two", running.now())
            assert not claimed.is_over, "another process can bring it to its end"

    play(work)


@pytest.mark.parametrize(
    ("told", "is_done", "expected"),
    [
        (None, False, (0, 1, 0, 1)),
        (None, True, (1, 1, 1, 1)),
        (StatementProgress(1, 3, 4, 9), False, (1, 3, 4, 9)),
    ],
)
def test_progress_of_a_statement_without_stages_is_all_or_nothing(
    told: StatementProgress | None, is_done: bool, expected: tuple[int, ...]
) -> None:
    async def work(world: World) -> None:
        world.engine.told = told
        run = begun(world, await world.keep(making.job()))
        run.query_id, run.is_done = new_query_id(), is_done
        found = run.current_progress()
        assert (found.stages_done, found.stages_total) == expected[:2]
        assert (found.tasks_done, found.tasks_total) == expected[2:]

    play(work)
