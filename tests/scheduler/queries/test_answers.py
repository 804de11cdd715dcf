import asyncio
from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.errors import QueryCancelledError
from caraway_core.ids import PUBLIC, CatalogVersion, TableName, new_query_id
from caraway_core.statements import Statement
from caraway_scheduler.queries.active import ActiveQuery
from caraway_scheduler.queries.answers import CachedRows, LiveRows
from caraway_scheduler.queries.cache import ResultsCache
from tests.kit.stream_double import StreamDouble
from tests.kit.turns import turn

BATCH = pa.record_batch({"a": [1, 2]})


class Stream(StreamDouble):
    """Yields one batch and then blocks; records when the wait for more is abandoned."""

    schema = BATCH.schema
    reads_only_catalog = True
    written: TableName | None = None

    def __init__(self) -> None:
        self.is_waiting = asyncio.Event()
        self.was_given_up = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        yield BATCH
        self.is_waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.was_given_up.set()

    async def aclose(self) -> None: ...


def query() -> ActiveQuery:
    return ActiveQuery(new_query_id(), "http", "SELECT 1", PUBLIC, 0)


async def test_cancel_while_waiting_for_the_end_leaves_no_fetch() -> None:
    stream, running = Stream(), query()
    rows = LiveRows(stream, running, lambda *_: None)

    async def prefetch() -> None:
        with running.step():
            await rows.prefetch()

    task = asyncio.create_task(prefetch())
    await asyncio.wait_for(stream.is_waiting.wait(), 60)
    running.stop("cancelled")
    with pytest.raises(QueryCancelledError):
        await task
    await asyncio.wait_for(stream.was_given_up.wait(), 60)


async def test_first_batch_is_not_held_back_and_close_gives_up_the_rest() -> None:
    stream, ended = Stream(), []
    rows = LiveRows(stream, query(), lambda error, sent, _: ended.append((error, sent)))
    await rows.prefetch()
    assert rows.whole is None
    assert await anext(rows) is BATCH
    rows.close()
    await asyncio.wait_for(stream.was_given_up.wait(), 60)
    await turn()
    assert ended == [(None, 2)]


async def test_the_end_of_rows_that_are_known_to_end_is_waited_for_by_no_task() -> None:
    class Short(Stream):
        is_at_end = True

        async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
            yield BATCH
            self.was_given_up.set()

    finished: list[object] = []
    stream = Short()
    rows = LiveRows(stream, query(), lambda *told: finished.append(told))
    await rows.prefetch()
    assert len(asyncio.all_tasks()) == 1
    assert rows.whole == [BATCH]
    assert stream.was_given_up.is_set()
    assert [batch async for batch in rows] == [BATCH]
    assert finished == [(None, 2, BATCH)]


@pytest.mark.parametrize("count", [3, 100_000], ids=["few", "many"])
async def test_rows_for_the_cache_are_not_in_the_memory_of_the_engine(count: int) -> None:
    column = pa.array([f"a text that is long {number}" for number in range(count)])
    batch = pa.record_batch({"s": column, "d": column.dictionary_encode()})

    class One(Stream):
        schema = batch.schema

        async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
            yield batch

    stored: list[pa.RecordBatch] = []
    rows = LiveRows(One(), query(), lambda *_: None)
    rows.keep(1 << 30, stored.extend)
    [passed] = [each async for each in rows]
    assert stored == [batch] and passed is batch
    shared = stored[0].column(0).buffers()[2].address == column.buffers()[2].address
    assert shared == (count == 3)


class Plain(Stream):
    """Yields text as strings where its schema says views, as engine processes send them."""

    schema = pa.schema({"s": pa.string_view(), "n": pa.int64()})
    is_at_end = True

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.sizes = sizes

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        for size in self.sizes:
            yield pa.record_batch({"s": [f"text {n}" for n in range(size)], "n": range(size)})


@pytest.mark.parametrize("sizes", [(), (3,), (2, 20_000)], ids=["none", "small", "large"])
@pytest.mark.parametrize("takes_plain", [False, True])
async def test_cached_rows_have_the_types_that_their_reader_takes(
    sizes: tuple[int, ...], takes_plain: bool
) -> None:
    cache = ResultsCache(CacheSettings(), lambda: 0.0)
    key = ResultsCache.key(PUBLIC, CatalogVersion(1), Statement("SELECT 1", {}))
    rows = LiveRows(Plain(*sizes), query(), lambda *_: None)
    rows.keep(cache.largest_answer_bytes, lambda kept: cache.put(key, rows.schema, kept))
    passed = [batch async for batch in rows]
    assert all(batch.schema.types == [pa.string(), pa.int64()] for batch in passed)
    answer = cache.get(key)
    assert answer is not None
    cached = CachedRows(answer, takes_plain=takes_plain)
    assert cached.schema == Plain.schema and cached.row_count == sum(sizes)
    found = [batch async for batch in cached]
    assert list(cached.batches) == found
    expected = [pa.string() if takes_plain else pa.string_view(), pa.int64()]
    assert all(batch.schema.types == expected for batch in found)
    assert [b.to_pylist() for b in found] == [b.to_pylist() for b in passed]
