"""Background tasks never fail in silence."""

import asyncio
import logging
from contextlib import suppress

import pytest

from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import UnavailableError
from tests.kit.panics import Panic

WAIT_S = 60.0


async def test_a_failure_is_logged_counted_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[BaseException] = []
    owned = tasks.Tasks()

    async def fails() -> None:
        raise TypeError("no")

    before = tasks.FAILURES["a work"]
    with caplog.at_level(logging.ERROR):
        task = owned.spawn(fails(), "a work", seen.append, dataset="orders")
        await asyncio.wait((task,), timeout=WAIT_S)
        await asyncio.sleep(0)
    assert [type(each) for each in seen] == [TypeError]
    assert tasks.FAILURES["a work"] == before + 1
    (record,) = caplog.records
    assert (record.work, record.dataset) == ("a work", "orders")  # type: ignore[attr-defined]
    assert not len(owned)


AWAY, LATE = UnavailableError("the database is away"), UnavailableError("too late")


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (AWAY, "the database is away"),
        (ExceptionGroup("", [AWAY, ExceptionGroup("", [AWAY, LATE])]),
         "the database is away; too late"),
        (ExceptionGroup("", [AWAY, TypeError("a bug")]), None),
        (TypeError("a bug"), None),
    ],
)  # fmt: skip
def test_an_expected_failure_is_one_line_with_its_reason(
    caplog: pytest.LogCaptureFixture, failure: Exception, reason: str | None
) -> None:
    tasks.note(failure, "a work")
    (record,) = caplog.records
    assert getattr(record, "reason", None) == reason
    assert (record.exc_info is None) is (reason is not None)


async def test_kept_work_begins_again_and_the_same_failure_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_DELAYS", Delays(0.0, 0.0))
    times, done = 0, asyncio.Event()
    reported: list[BaseException] = []

    async def work() -> None:
        nonlocal times
        times += 1
        if times < 4:
            raise RuntimeError("again" if times < 3 else "another")
        done.set()

    with caplog.at_level(logging.ERROR):
        owned = tasks.Tasks()
        owned.keep(work, "kept work", reported.append)
        await asyncio.wait_for(done.wait(), WAIT_S)
    await owned.ended()
    assert [str(each) for each in reported] == ["again", "again", "another"]
    assert len(caplog.records) == 2


RAISED = (asyncio.CancelledError("of its own"), Panic("rust"), BaseExceptionGroup("", [Panic()]))


@pytest.mark.parametrize("raised", RAISED, ids=lambda each: type(each).__name__)
async def test_a_failure_that_is_no_exception_is_reported_and_kept_work_begins_again(
    raised: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that itself raises CancelledError looks like a cancelled one."""
    monkeypatch.setattr(tasks, "_DELAYS", Delays(0.0, 0.0))
    spawned: list[BaseException] = []
    kept: list[BaseException] = []
    failures, done = [raised], asyncio.Event()

    async def fails() -> None:
        raise raised

    async def fails_once() -> None:
        if failures:
            raise failures.pop()
        done.set()

    owned = tasks.Tasks()
    owned.spawn(fails(), "a work", spawned.append)
    owned.keep(fails_once, "kept work", kept.append)
    await asyncio.wait_for(done.wait(), WAIT_S)
    await owned.ended()
    await asyncio.sleep(0)
    assert [type(each) for each in spawned] == [type(raised)]
    assert kept == [raised]


async def test_work_that_is_cancelled_has_not_failed() -> None:
    seen: list[BaseException] = []
    owned = tasks.Tasks()
    owned.spawn(asyncio.Event().wait(), "waiting", seen.append)
    owned.keep(_for_ever, "kept", seen.append)
    never_begun = owned.spawn(asyncio.Event().wait(), "not begun", seen.append)
    never_begun.cancel()
    await asyncio.sleep(0)
    await owned.aclose()
    assert seen == []


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def test_closing_cancels_and_waits() -> None:
    owned, ended = tasks.Tasks(), asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    owned.spawn(waits(), "waiting")
    await asyncio.sleep(0)
    await owned.aclose()
    assert ended.is_set() and not len(owned)


async def test_closing_lets_work_that_was_cancelled_before_clean_up() -> None:
    owned, began, may_end, cleaned = (
        tasks.Tasks(),
        asyncio.Event(),
        asyncio.Event(),
        asyncio.Event(),
    )

    async def cleans_up() -> None:
        try:
            began.set()
            await _for_ever()
        finally:
            await may_end.wait()
            cleaned.set()

    task = owned.spawn(cleans_up(), "a work")
    await began.wait()
    task.cancel()
    closing = asyncio.ensure_future(owned.aclose())
    await asyncio.wait((closing,), timeout=0)
    may_end.set()
    async with asyncio.timeout(WAIT_S):
        await closing
    assert cleaned.is_set()


async def test_a_report_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def report(_exc: BaseException) -> None:
        raise ValueError("the report failed, too")

    with caplog.at_level(logging.ERROR):
        tasks.note(KeyError("x"), "a work", report)
    assert len(caplog.records) == 2


async def test_closing_ends_work_whose_time_limit_expires_at_that_moment() -> None:
    """A time limit cancels its task, and takes that back; the closing must not be lost with it."""
    owned = tasks.Tasks()

    async def poll() -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()

    task = owned.spawn(poll(), "poll")
    async with asyncio.timeout(60):
        while not task.cancelling():
            await asyncio.sleep(0)
        await owned.aclose()
    assert task.cancelled()


async def test_closing_that_is_cancelled_lets_clean_up_end() -> None:
    """The owner is cancelled while it waits; its tasks are not cancelled a second time."""
    owned = tasks.Tasks()
    cleans, goes_on = asyncio.Event(), asyncio.Event()
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleans.set()
            await goes_on.wait()
            cleaned.append("closed")

    task = owned.spawn(work(), "a work")
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(owned.aclose())
    await asyncio.wait_for(cleans.wait(), WAIT_S)
    closing.cancel()
    await asyncio.wait((closing,), timeout=WAIT_S)
    assert closing.cancelled() and not task.done()
    goes_on.set()
    await asyncio.wait((task,), timeout=WAIT_S)
    assert cleaned == ["closed"]


async def test_closing_waits_also_for_work_that_clean_up_begins() -> None:
    owned = tasks.Tasks()
    ended: list[str] = []

    async def last() -> None:
        await asyncio.sleep(0)
        ended.append("last")

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            owned.spawn(last(), "what clean-up begins")

    owned.spawn(work(), "a work")
    await asyncio.sleep(0)
    await asyncio.wait_for(owned.aclose(), WAIT_S)
    assert ended == ["last"] and not len(owned)
