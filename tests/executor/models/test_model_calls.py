"""Calls of hosted models: pages of their answers, their errors, and who ends them."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from caraway_core.errors import ModelAwayError, ModelError
from caraway_executor.models import model_calls
from caraway_executor.models.model_calls import ModelCalls
from tests.kit.clocks import Clock
from tests.kit.deadlines import eventually


class Answer:
    """An answer whose parts are given one by one."""

    def __init__(self) -> None:
        self.parts: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self.taken = 0
        self.is_closed = False
        self.away = 0

    def give(self, *parts: bytes | BaseException | None) -> None:
        for part in parts:
            self.parts.put_nowait(part)

    async def read(self) -> AsyncGenerator[bytes, None]:
        try:
            while (part := await self.parts.get()) is not None:
                if isinstance(part, BaseException):
                    raise part
                self.taken += 1
                yield part
        finally:
            self.is_closed = True

    def note_away(self) -> None:
        self.away += 1


async def begin(calls: ModelCalls, answer: Answer, name: str = "c", key: str = "k") -> bytes:
    parts = await calls.begin_call(name, key, "m", answer.read(), answer.note_away)
    return b"".join(parts.parts)


async def test_an_answer_is_read_in_pages() -> None:
    calls, answer = ModelCalls(Clock()), Answer()
    answer.give(b"a")
    assert await begin(calls, answer) == b"a"
    assert (len(calls), calls.count_of("k"), calls.count_of("other")) == (1, 1, 0)
    reading = asyncio.ensure_future(calls.next("c"))
    answer.give(b"b")
    page = await reading
    assert (page.parts, page.is_last) == ((b"b",), False)
    answer.give(b"c", b"d", None)
    await eventually(lambda: _true(answer.is_closed), "the answer is read")
    page = await calls.next("c")
    assert (page.parts, page.is_last) == ((b"c", b"d"), True)
    assert (len(calls), calls.answered["m"]) == (0, 1)
    with pytest.raises(ModelAwayError, match="no such call"):
        await calls.next("c")


async def _true(is_so: bool) -> bool:
    return is_so


async def test_an_empty_answer_is_one_page() -> None:
    calls, answer = ModelCalls(Clock()), Answer()
    answer.give(None)
    page = await calls.begin_call("c", "k", "m", answer.read(), answer.note_away)
    assert (page.parts, page.is_last, len(calls)) == ((), True, 0)


@pytest.mark.parametrize(
    ("raised", "seen", "away"),
    [
        (ModelError("it is tired"), "it is tired", 0),
        (ModelAwayError("it is gone"), "it is gone", 1),
    ],
)
async def test_what_came_before_an_error_is_read_first(
    raised: ModelError, seen: str, away: int
) -> None:
    calls, answer = ModelCalls(Clock()), Answer()
    answer.give(b"a")
    await begin(calls, answer)
    answer.give(b"b", raised)
    await eventually(lambda: _true(answer.is_closed), "the answer has failed")
    page = await calls.next("c")
    assert (page.parts, page.is_last) == ((b"b",), False)
    with pytest.raises(type(raised), match=seen):
        await calls.next("c")
    assert (answer.away, len(calls), calls.answered["m"]) == (away, 0, 0)


async def test_a_bug_of_the_model_is_told_without_its_words() -> None:
    calls, answer = ModelCalls(Clock()), Answer()
    answer.give(RuntimeError("hunter2"))
    with pytest.raises(ModelError, match="model 'm': internal error") as caught:
        await begin(calls, answer)
    assert "hunter2" not in caught.value.message


async def test_a_slow_reader_slows_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_calls, "_MOST_PARTS", 3)
    calls, answer = ModelCalls(Clock()), Answer()
    answer.give(b"0")
    await begin(calls, answer)
    answer.give(*(str(number).encode() for number in range(1, 9)))
    await eventually(lambda: _true(answer.taken == 4), "three more parts are taken")
    for _ in range(10):
        await asyncio.sleep(0)
    assert answer.taken == 4
    assert (await calls.next("c")).parts == (b"1", b"2", b"3")
    await eventually(lambda: _true(answer.taken == 7), "the next three are taken")
    await calls.aclose()
    assert answer.is_closed


async def test_a_call_that_is_ended_tells_its_reader() -> None:
    calls, answer = ModelCalls(Clock()), Answer()
    answer.give(b"a")
    await begin(calls, answer)
    reading = asyncio.ensure_future(calls.next("c"))
    await asyncio.sleep(0)
    await calls.end("c")
    with pytest.raises(ModelAwayError, match="has ended the call"):
        await reading
    assert answer.is_closed
    await calls.end("c")


async def test_a_caller_that_leaves_ends_its_call() -> None:
    calls, answer = ModelCalls(Clock()), Answer()
    beginning = asyncio.ensure_future(begin(calls, answer))
    await eventually(lambda: _true(len(calls) == 1), "the call is under way")
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    assert (len(calls), answer.taken) == (0, 0)


async def test_calls_that_nobody_reads_are_forgotten() -> None:
    clock = Clock()
    calls = ModelCalls(clock)
    forgotten, read = Answer(), Answer()
    forgotten.give(b"a")
    read.give(b"a")
    await begin(calls, forgotten, "forgotten")
    await begin(calls, read, "read")
    reading = asyncio.ensure_future(calls.next("read"))
    await asyncio.sleep(0)
    clock.now += model_calls._FORGOTTEN_S
    await calls.end_forgotten()
    assert len(calls) == 2
    clock.now += 1
    await calls.end_forgotten()
    assert (forgotten.is_closed, read.is_closed, len(calls)) == (True, False, 1)
    read.give(b"b", None)
    assert (await reading).parts == (b"b",)
    assert (read.is_closed, len(calls)) == (True, 0)
