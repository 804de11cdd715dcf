import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest

from caraway_executor.engines.reading_ahead import reading_ahead
from tests.kit.turns import turn

BATCH = pa.record_batch({"n": [1, 2]})


class Batches:
    """A scripted stream that counts its reads."""

    def __init__(self, *steps: pa.RecordBatch | BaseException) -> None:
        self._steps = list(steps)
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for step in self._steps:
            if isinstance(step, BaseException):
                raise step
            self.read += 1
            yield step


def any_number() -> int:
    return 1_000


async def test_batches_at_hand_are_taken_together_up_to_a_size() -> None:
    stream: Any = Batches(*[BATCH] * 5)
    async with reading_ahead(stream) as ahead:
        assert await ahead.take_batches(lambda: 2) == [BATCH]
        await turn()
        assert await ahead.take_batches(lambda: 5) == [BATCH] * 2
        await turn()
        assert await ahead.take_batches(any_number) == [BATCH] * 2
        assert await ahead.take_batches(any_number) == []


async def test_batch_much_larger_than_wanted_is_cut_evenly() -> None:
    large = pa.record_batch({"n": list(range(10))})
    stream: Any = Batches(large, BATCH)
    async with reading_ahead(stream) as ahead:
        taken = [await ahead.take_batches(lambda: 4) for _ in range(3)]
        assert [[each.num_rows for each in batches] for batches in taken] == [[5], [5], [2]]
        assert taken[0] + taken[1] == [large.slice(0, 5), large.slice(5)]
        assert await ahead.take_batches(any_number) == []


async def test_reads_only_a_few_ahead_of_its_reader() -> None:
    stream: Any = Batches(*[BATCH] * 50)
    async with reading_ahead(stream) as ahead:
        for _ in range(20):
            await turn()
        assert stream.read == 4
        await ahead.take_batches(lambda: 2)
        for _ in range(20):
            await turn()
        assert stream.read == 5


async def test_error_comes_after_the_batches_before_it() -> None:
    stream: Any = Batches(BATCH, ValueError("broken"))
    async with reading_ahead(stream) as ahead:
        assert await ahead.take_batches(any_number) == [BATCH]
        with pytest.raises(ValueError, match="broken"):
            await ahead.take_batches(any_number)


LONG_S = 60.0


async def test_the_only_batch_is_known_at_the_end_and_stays_to_be_taken() -> None:
    stream: Any = Batches(BATCH)
    async with reading_ahead(stream) as ahead:
        assert await ahead.only_batch(LONG_S, LONG_S) == BATCH
        assert await ahead.take_batches(any_number) == [BATCH]
        assert await ahead.take_batches(any_number) == []


@pytest.mark.parametrize(
    "steps", [(), (BATCH, BATCH), (ValueError("no"),), (BATCH, ValueError("no"))]
)
async def test_other_streams_have_no_only_batch(steps: tuple[Any, ...]) -> None:
    stream: Any = Batches(*steps)
    async with reading_ahead(stream) as ahead:
        assert await ahead.only_batch(LONG_S, LONG_S) is None
        for step in steps:
            if isinstance(step, ValueError):
                with pytest.raises(ValueError, match="no"):
                    await ahead.take_batches(any_number)
            else:
                assert await ahead.take_batches(lambda: 2) == [BATCH]


class Pausing:
    """A stream that pauses for good after some batches."""

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self._batches = batches

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for batch in self._batches:
            yield batch
        await asyncio.Event().wait()


@pytest.mark.parametrize("batches", [(), (BATCH,)], ids=["rows", "end"])
async def test_what_comes_late_is_not_waited_for(batches: tuple[pa.RecordBatch, ...]) -> None:
    stream: Any = Pausing(*batches)
    async with reading_ahead(stream) as ahead:
        assert await ahead.only_batch(0.01, 0.01) is None
        if batches:
            assert await ahead.take_batches(any_number) == [BATCH]


async def test_a_batch_is_kept_until_a_future_is_done() -> None:
    stream: Any = Pausing(BATCH)
    answered = asyncio.get_running_loop().create_future()
    async with reading_ahead(stream) as ahead:
        assert await ahead.only_batch(LONG_S, 0.0) is None
        waiting = asyncio.ensure_future(ahead.only_batch_unless(answered, LONG_S))
        for _ in range(10):
            await turn()
        assert not waiting.done()
        answered.set_result(None)
        assert await waiting is None
        assert await ahead.take_batches(any_number) == [BATCH]


async def test_the_end_of_a_kept_batch_is_seen_before_a_future() -> None:
    end = asyncio.Event()

    async def ending() -> AsyncIterator[pa.RecordBatch]:
        yield BATCH
        await end.wait()

    stream: Any = ending()
    async with reading_ahead(stream) as ahead:
        assert await ahead.only_batch(LONG_S, 0.0) is None and ahead.is_at_one_batch
        waiting = asyncio.ensure_future(ahead.only_batch_unless(asyncio.Future(), LONG_S))
        await turn()
        end.set()
        assert await waiting == BATCH and not ahead.is_at_one_batch
