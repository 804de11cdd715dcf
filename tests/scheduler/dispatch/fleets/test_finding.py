"""Looks for executors that are slow or fail."""

import asyncio
import logging
from collections.abc import Mapping

import pytest

from caraway_core.ids import ExecutorId
from caraway_scheduler.dispatch.fleets import finding
from caraway_scheduler.dispatch.fleets.finding import Finding

A, B = ExecutorId("a"), ExecutorId("b")


class Look:
    """A look that answers what a test says, when it says so."""

    def __init__(self) -> None:
        self.asked: list[set[ExecutorId]] = []
        self.answers: list[asyncio.Future[Mapping[ExecutorId, str]]] = []

    async def __call__(self, known: set[ExecutorId]) -> Mapping[ExecutorId, str]:
        self.asked.append(known)
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    monkeypatch.setattr(finding, "_FIND_S", 0.02)
    return Look()


async def test_a_slow_look_goes_on_and_is_the_only_one(look: Look) -> None:
    finder = Finding(look, "blind")
    assert await finder.found({A}) == {}
    assert await finder.found({A}) == {}
    assert look.asked == [{A}]
    look.answers[0].set_result({B: "b"})
    assert await finder.found(set()) == {B: "b"}
    assert await finder.found(set()) == {}, "the next look has not answered"
    assert look.asked == [{A}, set()]
    assert await finder.leave(0) == {}


async def test_a_failure_is_logged_once_until_a_look_works(
    look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    finder = Finding(look, "no executors are seen")

    async def answered(answer: Mapping[ExecutorId, str] | Exception) -> Mapping[ExecutorId, str]:
        waiting = asyncio.ensure_future(finder.found(set()))
        count = len(look.answers)
        while len(look.answers) == count:
            await asyncio.sleep(0)
        if isinstance(answer, Exception):
            look.answers[-1].set_exception(answer)
        else:
            look.answers[-1].set_result(answer)
        return await waiting

    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert await answered(RuntimeError("no head\nwith details")) == {}
        assert await answered({A: "a"}) == {A: "a"}
        assert await answered(RuntimeError("again")) == {}
    said = [(each.message, each.__dict__["cause"]) for each in caplog.records]
    assert said == [("no executors are seen", "no head"), ("no executors are seen", "again")]


async def test_who_leaves_takes_what_was_found_last(look: Look) -> None:
    finder = Finding(look, "blind")
    assert await finder.leave(0) == {}
    await finder.found(set())
    look.answers[0].set_result({A: "a"})
    assert await finder.leave(1) == {A: "a"}
    await finder.found(set())
    look.answers[1].set_exception(RuntimeError("gone"))
    assert await finder.leave(1) == {}
