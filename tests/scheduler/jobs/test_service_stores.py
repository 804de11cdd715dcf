"""Jobs whose disk is full, whose stores are away, and whose results are removed."""

from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import (
    DiskFullError,
    ExecutionError,
    StateAwayError,
    StateFullError,
)
from tests.kit.deadlines import eventually
from tests.kit.disks import disk_with_room_for
from tests.kit.job_schedulers import ADA, MortalStore, site
from tests.scheduler.jobs.services import NUMBERS, nothing_is_left


async def test_job_waits_for_room_on_a_full_disk_and_says_so(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        one.dispatch.may_begin.clear()
        job = await one.submit("SELECT value FROM generate_series(1, 300000)")
        with disk_with_room_for(300_000):
            one.dispatch.may_begin.set()

            async def look() -> bool:
                running = await one.jobs.service.find(ADA.id, job.job_id)
                told = await one.jobs.service.progress(running)
                return told is not None and "free or add space" in told.waits_for

            await eventually(look, "the job says what it waits for")
        assert (await one.ended(job.job_id)).status == "SUCCEEDED"


async def test_job_fails_with_the_cause_when_the_disk_stays_full(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler(full_patience_s=0.0)
        one.dispatch.fails = [DiskFullError("the disk is full")]
        job = await one.ended((await one.submit("SELECT 1")).job_id)
        assert job.status == "FAILED"
        assert job.error is not None and job.error.message == "the disk is full"


async def test_job_that_cannot_be_written_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler(begins=False)
        job = await one.submit("SELECT 1")
        write = MortalStore.compare_and_set

        async def full(self: Any, key: str, *rest: Any, **more: Any) -> Any:
            # An update of an existing entry may still succeed.
            if key.startswith("jobs/"):
                raise StateFullError("the state store is full")
            return await write(self, key, *rest, **more)

        monkeypatch.setattr(MortalStore, "compare_and_set", full)
        with pytest.raises(StateFullError):
            await one.submit("SELECT 2")
        one.jobs.begin_jobs()

        async def look() -> bool:
            pending = await one.jobs.service.find(ADA.id, job.job_id)
            told = await one.jobs.service.progress(pending)
            assert pending.status == "PENDING"
            return told is not None and told.waits_for == "the state store has no room"

        await eventually(look, "the job says what it waits for")
        monkeypatch.setattr(MortalStore, "compare_and_set", write)
        assert (await one.ended(job.job_id)).status == "SUCCEEDED"


async def test_expired_answer_is_closed_and_removed(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler(retention_s=0)
        job = await one.submit(NUMBERS)

        async def closed() -> bool:
            return (await one.jobs.service.find(ADA.id, job.job_id)).status == "CLOSED"

        await eventually(closed, "the job is closed")

        await nothing_is_left(place)
        assert await one.jobs.service.list(ADA.id, None, 10) == []
        assert [each.job_id for each in await one.jobs.service.list(ADA.id, "CLOSED", 10)] == [
            job.job_id
        ]


async def test_orphaned_results_are_removed(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.ended((await one.submit("SELECT 1")).job_id)
        orphans = [place.results / name for name in (f"{job.job_id}.0", "0000.1", "junk")]
        for orphan in orphans:
            orphan.mkdir()
            (orphan / "file").write_text("x")

        async def gone() -> bool:
            return not any(orphan.exists() for orphan in orphans)

        await eventually(gone, "orphans are removed")
        assert (await one.rows(job)).num_rows == 1


async def test_outage_of_the_store_loses_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        one.dispatch.may_begin.clear()
        job = await one.submit("SELECT 1")
        await one.dispatch.began.wait()
        one.store.away = StateAwayError("the store is away")
        one.dispatch.may_begin.set()
        with pytest.raises(StateAwayError):
            await one.submit("SELECT 2")
        with pytest.raises(StateAwayError):
            await one.jobs.service.find(ADA.id, job.job_id)
        one.store.away = None
        assert (await one.ended(job.job_id)).status == "SUCCEEDED"
        assert len(one.dispatch.executed) == 1


async def test_damaged_chunk_is_refused(tmp_path: Path) -> None:
    async with site(tmp_path) as place:
        one = await place.scheduler()
        job = await one.ended((await one.submit("SELECT 1")).job_id)
        (chunk,) = (place.results / job.result_key).iterdir()
        chunk.write_bytes(chunk.read_bytes()[:-9] + b"123456789")
        with pytest.raises(ExecutionError, match="damaged"):
            await one.rows(job)
