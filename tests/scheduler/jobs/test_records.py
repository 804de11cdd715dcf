import asyncio

import pyarrow as pa
import pytest

from caraway_core.errors import CarawayError, JobConflictError
from caraway_core.ids import PUBLIC, JobId, PrincipalId, new_job_id
from caraway_core.protocols.results import ChunkInfo
from caraway_scheduler.jobs import states
from caraway_scheduler.jobs.model import JobProgress, JobRequest
from caraway_scheduler.jobs.records import PROGRESS_TTL_S, JobRecords, is_job_id, job_id_in, job_key
from caraway_scheduler.queries.storing import StoredAnswer
from tests.kit.clocks import Clock
from tests.scheduler.jobs import making
from tests.scheduler.jobs.conftest import Opening

HOUR_S = 3600.0
MANIFEST = StoredAnswer(pa.schema([("a", pa.int64())]), (ChunkInfo(0, 3, 300, "ab"),))
ASKED = JobRequest("SELECT $1", {"1": 5})


def test_ids_are_what_caraway_gives_out_and_nothing_else() -> None:
    assert is_job_id(new_job_id())
    for text in ("", "a", "A/B", "../A", "A\n", "A ", "\u0410", "A" * 65, "A*", "\ud800"):
        assert not is_job_id(text)


def test_no_principal_lies_under_another() -> None:
    inside = job_key(PrincipalId("a"), JobId("A"))
    for other in ("a/A", "a/", "", "../a", "%61", "a%2FA", "é", "\ud800"):
        key = job_key(PrincipalId(other), JobId("A"))
        assert not key.startswith("jobs/a/")
        assert key != inside
        assert key.count("/") == 2
        assert job_id_in(key) == "A"


async def test_a_job_is_found_by_its_principal_only(opened: Opening) -> None:
    async with opened() as store:
        records = JobRecords(store)
        held = await records.create(making.job("A-1", "key-1"))
        assert await records.get(PrincipalId("key-1"), JobId("A-1")) == held
        assert await records.get(PrincipalId("key-2"), JobId("A-1")) is None
        assert await records.get(PrincipalId("key-1"), JobId("A-2")) is None
        assert await records.get(PrincipalId(""), JobId("key-1/A-1")) is None
    async with opened() as store:
        assert await JobRecords(store).get(PrincipalId("key-1"), JobId("A-1")) == held


async def test_creating_again_returns_the_existing_job(opened: Opening) -> None:
    async with opened() as store:
        records = JobRecords(store)
        held = await records.create(making.job())
        running = await records.replace(held, states.began(held.job, making.START, writes=False))
        assert running is not None
        assert await records.create(making.job()) == running


async def test_one_of_several_writers_succeeds(opened: Opening) -> None:
    async with opened() as store, opened() as other:
        records, others = JobRecords(store), JobRecords(other)
        held = await records.create(making.job())
        taken = [states.claimed(held.job, f"process {number}", making.START) for number in range(8)]
        outcomes = await asyncio.gather(
            *(
                (records if number % 2 else others).replace(held, job)
                for number, job in enumerate(taken)
            )
        )
        won = [outcome for outcome in outcomes if outcome is not None]
        assert len(won) == 1
        assert await records.get(PUBLIC, held.job.job_id) == won[0]
        assert await records.replace(held, states.cancelled(held.job, making.START)) is None


async def test_a_job_does_not_take_the_place_of_another(opened: Opening) -> None:
    async with opened() as store:
        records = JobRecords(store)
        held = await records.create(making.job())
        with pytest.raises(ValueError, match="cannot take the place"):
            await records.replace(held, making.job("B-1"))


async def test_a_job_may_be_given_an_end(opened: Opening, clock: Clock) -> None:
    async with opened() as store:
        records = JobRecords(store)
        held = await records.create(making.job())
        over = states.cancelled(held.job, making.START)
        assert await records.replace(held, over, ttl_s=HOUR_S)
        clock.now += HOUR_S
        assert await records.get(PUBLIC, held.job.job_id) is None


async def test_a_key_returns_its_first_request(opened: Opening, clock: Clock) -> None:
    async with opened() as store:
        records = JobRecords(store)

        async def remember(job_id: str, principal: PrincipalId = PUBLIC, key: str = "k") -> str:
            return await records.remember_request(principal, key, ASKED, JobId(job_id), HOUR_S)

        assert await remember("A") == "A"
        assert await remember("B") == "A"
        assert await remember("C", principal=PrincipalId("key-1")) == "C"
        assert await remember("D", key="k2") == "D"
        assert await remember("E", key="\ud800/../") == "E"
        with pytest.raises(
            JobConflictError, match=r"Idempotency-Key was already used for query 'A'"
        ):
            other = JobRequest("SELECT $1", {"1": 6})
            await records.remember_request(PUBLIC, "k", other, JobId("F"), HOUR_S)
        clock.now += HOUR_S
        assert await remember("A-2") == "A-2"


async def test_one_of_concurrent_requests_is_the_first(opened: Opening) -> None:
    async with opened() as store, opened() as other:
        found = await asyncio.gather(
            *(
                JobRecords(each).remember_request(PUBLIC, "k", ASKED, JobId(job_id), HOUR_S)
                for each, job_id in ((store, "A"), (other, "B"), (store, "C"), (other, "D"))
            )
        )
        assert len(set(found)) == 1


async def test_a_manifest_belongs_to_one_epoch(opened: Opening, clock: Clock) -> None:
    async with opened() as store:
        records = JobRecords(store)
        job = making.job()
        assert await records.manifest(job) is None
        await records.write_manifest(job, StoredAnswer(MANIFEST.schema, ()), HOUR_S)
        await records.write_manifest(job, MANIFEST, HOUR_S)
        assert await records.manifest(job) == MANIFEST
        assert await records.manifest(states.claimed(job, "two", making.START)) is None
        clock.now += HOUR_S
        assert await records.manifest(job) is None


async def test_progress_of_an_epoch_that_is_over_is_not_shown(
    opened: Opening, clock: Clock
) -> None:
    async with opened() as store:
        records = JobRecords(store)
        first = making.job()
        second = states.claimed(first, "two", making.START)
        await records.write_progress(first, JobProgress(rows=1))
        assert await records.progress(first) == JobProgress(rows=1)
        assert await records.progress(second) is None
        await records.write_progress(second, JobProgress(rows=2))
        await records.write_progress(first, JobProgress(rows=3))
        assert await records.progress(second) == JobProgress(rows=2)
        assert await records.progress(first) is None
        clock.now += PROGRESS_TTL_S
        assert await records.progress(second) is None


async def test_deleting_leaves_nothing(opened: Opening) -> None:
    async with opened() as store:
        records = JobRecords(store)
        held = await records.create(making.job())
        await records.write_manifest(held.job, MANIFEST, HOUR_S)
        await records.write_progress(held.job, JobProgress())
        assert await records.delete(held)
        assert await store.scan("") == []


async def test_a_job_that_changed_is_not_deleted(opened: Opening) -> None:
    async with opened() as store:
        records = JobRecords(store)
        held = await records.create(making.job())
        await records.write_manifest(held.job, MANIFEST, HOUR_S)
        changed = await records.replace(held, states.released(held.job))
        assert not await records.delete(held)
        assert await records.get(PUBLIC, held.job.job_id) == changed
        assert await records.manifest(held.job) == MANIFEST


async def test_an_id_that_could_be_a_path_is_refused(opened: Opening) -> None:
    async with opened() as store:
        records = JobRecords(store)
        job = making.job("../A")
        with pytest.raises(CarawayError, match="the id of a query consists of"):
            await records.create(job)
        with pytest.raises(CarawayError, match="the id of a query consists of"):
            await records.write_manifest(job, MANIFEST, HOUR_S)
        assert await store.scan("") == []
