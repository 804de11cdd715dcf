"""Background tasks never fail in silence."""

import asyncio
import logging

import pytest

from caraway_core import tasks

WAIT_S = 5.0


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


async def test_kept_work_begins_again_and_the_same_failure_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "pause_s", lambda _failures: 0.0)
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


async def test_a_report_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def report(_exc: BaseException) -> None:
        raise ValueError("the report failed, too")

    with caplog.at_level(logging.ERROR):
        tasks.note(KeyError("x"), "a work", report)
    assert len(caplog.records) == 2


def test_back_off_grows_to_a_minute() -> None:
    assert 1 <= tasks.pause_s(1) <= 1.2
    assert 60 <= tasks.pause_s(1000) <= 72
