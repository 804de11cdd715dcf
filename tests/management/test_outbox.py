import asyncio
from dataclasses import dataclass, field, replace

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from caraway_core.errors import UnavailableError
from caraway_management import composition, outbox
from caraway_management.deployers.protocol import NoDeployer
from caraway_management.deployments import applying
from caraway_management.outbox import Again, Entry, Worker
from caraway_management.store.tables import OutboxEntry
from tests.kit.management import Installation


@dataclass
class Recorder:
    """A handler that records entries, and answers as the test says."""

    seen: list[tuple[str, int]] = field(default_factory=list)
    answers: dict[int, object] = field(default_factory=dict)
    """The result of the first call for a payload's number."""

    async def __call__(self, entry: Entry) -> Again | None:
        number = entry.payload["n"]
        self.seen.append((entry.subject, number))
        answer = self.answers.pop(number, None)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return None
        assert answer is None or isinstance(answer, Again)
        return answer


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def _enqueue(installation: Installation, *entries: tuple[str, int], kind: str = "kind") -> None:
    async def add(session: AsyncSession) -> None:
        for subject, number in entries:
            await outbox.enqueue(session, installation.clock(), kind, subject, {"n": number})

    installation.change(add)


def _worker(installation: Installation, recorder: Recorder, **arguments: object) -> Worker:
    return Worker(
        installation.services.database,
        installation.clock,
        {"kind": recorder},
        **arguments,  # type: ignore[arg-type]
    )


def _left(installation: Installation) -> list[OutboxEntry]:
    async def read() -> list[OutboxEntry]:
        async with installation.services.database.read() as session:
            return list(await session.scalars(select(OutboxEntry).order_by(OutboxEntry.id)))

    return installation.run(read)


def test_entries_of_a_subject_are_done_in_order(
    installation: Installation, recorder: Recorder
) -> None:
    _enqueue(installation, ("a", 1), ("a", 2), ("b", 3))
    worker = _worker(installation, recorder)
    assert installation.run(worker.run_once) == 2
    assert sorted(recorder.seen) == [("a", 1), ("b", 3)]
    assert installation.run(worker.run_once) == 1
    assert recorder.seen[-1] == ("a", 2)
    assert installation.run(worker.run_once) == 0
    assert _left(installation) == []


def test_a_failed_entry_waits_longer_each_time_and_holds_its_subject(
    installation: Installation, recorder: Recorder
) -> None:
    _enqueue(installation, ("a", 1), ("a", 2))
    worker = _worker(installation, recorder)
    waits = []
    for attempt in range(1, 4):
        recorder.answers[1] = UnavailableError("away", 1) if attempt < 3 else ValueError("a bug")
        assert installation.run(worker.run_once) == 1
        assert installation.run(worker.run_once) == 0
        (first, _) = _left(installation)
        assert (first.attempts, first.failures, first.owner) == (attempt, attempt, None)
        waits.append((first.next_at - installation.clock()).total_seconds())
        installation.clock.moment = first.next_at
    assert waits == sorted(waits) and 1 <= waits[0] < 2 <= waits[1]
    assert first.problem == "ValueError: a bug"
    installation.run(worker.run_once)
    installation.run(worker.run_once)
    assert recorder.seen == [("a", 1)] * 4 + [("a", 2)]
    assert _left(installation) == []


def test_work_that_goes_on_later_counts_no_failure(
    installation: Installation, recorder: Recorder
) -> None:
    _enqueue(installation, ("a", 1))
    worker = _worker(installation, recorder)
    recorder.answers[1] = Again(5)
    assert installation.run(worker.run_once) == 1
    assert installation.run(worker.run_once) == 0
    assert [each.failures for each in _left(installation)] == [0]
    installation.clock.advance(seconds=5)
    assert installation.run(worker.run_once) == 1
    assert _left(installation) == []


def test_kinds_of_other_releases_are_left_alone(
    installation: Installation, recorder: Recorder
) -> None:
    _enqueue(installation, ("a", 1), kind="of the next release")
    assert installation.run(_worker(installation, recorder).run_once) == 0
    assert len(_left(installation)) == 1


def test_two_workers_at_once_do_each_entry_once(
    installation: Installation, recorder: Recorder
) -> None:
    _enqueue(installation, *((f"s{number % 10}", number) for number in range(60)))
    workers = [_worker(installation, recorder, at_once=3) for _ in range(2)]

    async def finish() -> None:
        async def work(worker: Worker) -> None:
            while await _count(installation):
                await worker.run_once()

        await asyncio.gather(*map(work, workers))

    installation.run(finish)
    assert sorted(number for _, number in recorder.seen) == list(range(60))
    for subject in range(10):
        numbers = [number for name, number in recorder.seen if name == f"s{subject}"]
        assert numbers == sorted(numbers)


async def _count(installation: Installation) -> int:
    async with installation.services.database.read() as session:
        return len(list(await session.scalars(select(OutboxEntry.id))))


@pytest.mark.parametrize("is_same", [False, True], ids=["another", "the same"])
def test_the_entry_of_a_worker_that_hangs_is_done_again_by(
    installation: Installation, recorder: Recorder, is_same: bool
) -> None:
    _enqueue(installation, ("a", 1))
    hanging = _worker(installation, recorder)
    other = _worker(installation, recorder, owner=hanging.owner if is_same else None)

    async def scenario() -> None:
        recorder.answers[1] = first_may_end = asyncio.Event()
        first = asyncio.create_task(hanging.run_once())
        while not recorder.seen:
            await asyncio.sleep(0)
        assert await other.run_once() == 0
        installation.clock.advance(seconds=outbox.LEASE_S)
        recorder.answers[1] = second_may_end = asyncio.Event()
        second = asyncio.create_task(other.run_once())
        while len(recorder.seen) < 2:
            await asyncio.sleep(0)
        first_may_end.set()
        await first
        # The end of the first attempt does not count any more.
        async with installation.services.database.read() as session:
            [attempts] = await session.scalars(select(OutboxEntry.attempts))
        assert attempts == 2
        second_may_end.set()
        await second

    installation.run(scenario)
    assert _left(installation) == []


def test_a_handler_ends_before_its_lease_does(
    installation: Installation, recorder: Recorder
) -> None:
    _enqueue(installation, ("a", 1))

    async def scenario() -> None:
        recorder.answers[1] = asyncio.Event()
        await _worker(installation, recorder, lease_s=0.01).run_once()

    installation.run(scenario)
    assert [each.problem for each in _left(installation)] == ["it took too long"]


def test_a_worker_that_is_ended_leaves_its_entries_to_others(
    installation: Installation, recorder: Recorder
) -> None:
    _enqueue(installation, ("a", 1), ("b", 2))
    worker, other = _worker(installation, recorder), _worker(installation, recorder)

    async def scenario() -> None:
        recorder.answers[1] = asyncio.Event()
        running = asyncio.create_task(worker.run())
        while len(recorder.seen) < 2 or await _count(installation) > 1:
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.wait((running,))
        assert await other.run_once() == 1

    installation.run(scenario)
    assert recorder.seen[-1] == ("a", 1)
    assert _left(installation) == []


def test_an_instance_without_a_deployer_leaves_deployments_to_others(
    installation: Installation,
) -> None:
    services = replace(installation.services, deployer=NoDeployer())
    assert applying.APPLY not in composition.handlers(services)
    assert applying.APPLY in composition.handlers(installation.services)


def test_what_was_to_be_done_later_is_done_now_and_what_failed_waits(
    installation: Installation, recorder: Recorder
) -> None:
    worker = _worker(installation, recorder)
    _enqueue(installation, ("later", 1), ("other", 2), ("failed", 3))
    recorder.answers = {1: Again(60), 2: Again(60), 3: UnavailableError("not now", 1)}
    installation.run(worker.run_once)
    recorder.seen.clear()

    async def hasten(session: AsyncSession) -> None:
        for subject in ("later", "failed", "unknown"):
            await outbox.hasten(session, installation.clock(), "kind", subject)

    installation.change(hasten)
    installation.run(worker.run_once)
    assert recorder.seen == [("later", 1)]
