import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, ResultStoreError, ResultTooLargeError
from caraway_core.ids import TableName, new_query_id
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import (
    StoredChunk,
    answer_schema,
    begun,
    in_order,
    read_so_far,
    rows_read,
    unpack,
)
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.storage import storing
from caraway_executor.storage.storing import StoringStream
from caraway_plugins.stores.folder import FolderResultStore
from tests.kit.engine import memory, snapshot
from tests.kit.fragments import rows_of, task
from tests.kit.storing import Rows, order, read_back, words
from tests.kit.stubborn import StubbornRows, cancel_in_clean_up
from tests.kit.turns import turn
from tests.kit.workers import worker

NUMBERS = pa.schema([("v", pa.int64())])
WORDS = pa.schema([("v", pa.int64()), ("w", pa.string_view()), ("l", pa.list_(pa.string_view()))])


@pytest.fixture(autouse=True)
def without_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the reports of a stream that takes long."""
    monkeypatch.setattr(storing, "_PROGRESS_S", None)


def numbers(start: int, count: int = 10) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())})


def stored(folder: Path, rows: Rows, **options: Any) -> StoringStream:
    return StoringStream(rows, order(folder, **options), FolderResultStore(folder))


class HeldStore(FolderResultStore):
    """A store whose writes wait until they may go."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.may_go = asyncio.Event()
        self.begun: list[int] = []

    async def write_chunk(
        self,
        key: str,
        index: int,
        schema: pa.Schema,
        batches: Sequence[pa.RecordBatch],
        checksum: str = "",
    ) -> ChunkInfo:
        self.begun.append(index)
        await self.may_go.wait()
        return await super().write_chunk(key, index, schema, batches, checksum)


async def test_rows_are_read_back_as_they_were_and_word_says_where_they_are(
    tmp_path: Path,
) -> None:
    rows = Rows([numbers(start) for start in range(0, 90, 10)])
    stream = stored(tmp_path, rows, first_rows=10, chunk_bytes=30 * 8, task=3, attempt=2)
    found = await words(stream)
    assert [each.chunk.row_count for each in found] == [10, 30, 30, 20]
    assert [each.chunk.index for each in found] == [0, 1, 2, 3]
    assert {(each.task, each.attempt) for each in found} == {(3, 2)}
    assert rows.is_closed
    again = stored(tmp_path, Rows([numbers(start) for start in range(0, 90, 10)]))
    assert (await read_back(tmp_path, again))["n"].to_pylist() == list(range(90))


async def test_rows_are_reported_while_no_chunk_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "_PROGRESS_S", 0.001)
    may_end = asyncio.Event()

    class Slow(Rows):
        async def __anext__(self) -> pa.RecordBatch:
            if self.given == 2:
                await may_end.wait()
            return await super().__anext__()

    stream = stored(tmp_path, Slow([numbers(0), numbers(10)]), task=3, attempt=2)
    records: list[StoredChunk] = []
    async for batch in stream:
        records += unpack(batch)
        if rows_read(records) == 20:
            may_end.set()
    assert [each.is_chunk for each in records][-1:] == [True]
    assert {(each.task, each.attempt) for each in records} == {(3, 2)}
    assert [chunk.row_count for chunk in in_order(records)] == [20]
    assert rows_read(records) == 20


def test_rows_of_lost_attempts_do_not_count() -> None:
    def chunk(task: int, attempt: int, rows: int) -> StoredChunk:
        return StoredChunk(task, attempt, ChunkInfo(0, rows, 8 * rows, ""))

    records = [chunk(0, 0, 10), read_so_far(0, 0, 15), chunk(1, 0, 4), begun(0, 1)]
    assert rows_read(records) == 4
    assert rows_read([*records, read_so_far(0, 1, 7), read_so_far(0, 1, 9)]) == 13
    assert rows_read([*records, read_so_far(0, 1, 7), chunk(0, 1, 12)]) == 16
    assert rows_read([]) == 0


async def test_answer_without_rows_stores_nothing(tmp_path: Path) -> None:
    stream = stored(tmp_path, Rows([numbers(0, 0)]))
    assert await words(stream) == []
    assert answer_schema(stream.schema) == NUMBERS.set(0, pa.field("n", pa.int64()))
    assert await FolderResultStore(tmp_path).keys() == []


async def test_word_of_a_chunk_comes_while_the_rows_behind_it_are_still_waited_for(
    tmp_path: Path,
) -> None:
    more = asyncio.Event()

    class Slow(Rows):
        async def __anext__(self) -> pa.RecordBatch:
            if self.given == 1:
                await more.wait()
            return await super().__anext__()

    stream = stored(tmp_path, Slow([numbers(0), numbers(10)]), first_rows=10, chunk_bytes=80)
    (first,) = unpack(await anext(stream))
    assert first.chunk.row_count == 10
    more.set()
    assert [each.chunk.row_count for each in await words(stream)] == [10]


async def test_few_chunks_are_written_at_once_and_no_more_is_read_meanwhile(
    tmp_path: Path,
) -> None:
    rows = Rows([numbers(start) for start in range(0, 1000, 10)])
    store = HeldStore(tmp_path)
    stream = StoringStream(rows, order(tmp_path, first_rows=10, chunk_bytes=80), store)
    reading = asyncio.ensure_future(words(stream))
    for _ in range(300):
        await turn()
    assert 1 < len(store.begun) <= 4
    assert rows.given <= 5
    store.may_go.set()
    found = await reading
    assert [each.chunk.index for each in found] == list(range(100))


async def test_answer_that_grows_too_large_is_stopped(tmp_path: Path) -> None:
    rows = Rows([numbers(start) for start in range(0, 1000, 10)])
    stream = stored(tmp_path, rows, first_rows=10, chunk_bytes=80, most_bytes=2000)
    with pytest.raises(ResultTooLargeError, match=r"`maximum_size` of 2,000; select fewer"):
        await words(stream)
    assert rows.is_closed
    assert rows.given < 20
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_failure_of_the_store_ends_the_answer(tmp_path: Path) -> None:
    rows = Rows([numbers(start) for start in range(0, 1000, 10)])
    stream = stored(tmp_path, rows, first_rows=10, chunk_bytes=80)
    (tmp_path / "answer").write_text("a file where the folder of the answer should be")
    with pytest.raises(ResultStoreError, match="cannot be stored"):
        await words(stream)
    assert rows.is_closed


async def test_failure_of_the_rows_comes_after_the_chunks_before_it(tmp_path: Path) -> None:
    rows = Rows([numbers(0), numbers(10)], error=ExecutionError("division by zero"))
    stream = stored(tmp_path, rows, first_rows=10, chunk_bytes=80)
    assert [unpack(await anext(stream))[0].chunk.row_count for _ in range(2)] == [10, 10]
    with pytest.raises(ExecutionError, match="division by zero"):
        await anext(stream)
    assert rows.is_closed


@pytest.mark.parametrize("is_begun", [False, True])
async def test_closing_leaves_no_task_behind(tmp_path: Path, is_begun: bool) -> None:
    before = asyncio.all_tasks()
    rows = Rows([numbers(start) for start in range(0, 1000, 10)])
    store = HeldStore(tmp_path)
    stream = StoringStream(rows, order(tmp_path, first_rows=10, chunk_bytes=80), store)
    if is_begun:
        reading = asyncio.ensure_future(anext(stream))
        while not store.begun:
            await turn()
        reading.cancel()
        await asyncio.wait((reading,))
    await stream.aclose()
    assert asyncio.all_tasks() == before
    assert rows.is_closed
    assert await store.keys() == []


async def test_rows_are_given_the_schema_of_the_order(tmp_path: Path) -> None:
    schema = pa.schema([("total", pa.int32()), pa.field("name", pa.dictionary("int32", "string"))])
    batch = pa.record_batch({"c0": [1, 2], "c1": ["a", "b"]})
    table = await read_back(tmp_path, stored(tmp_path, Rows([batch]), schema=schema))
    assert table.schema == schema
    assert table.to_pylist() == [{"total": 1, "name": "a"}, {"total": 2, "name": "b"}]


async def test_slices_of_views_are_stored_without_the_text_around_them(tmp_path: Path) -> None:
    texts = [f"{n:>40}" for n in range(20_000)]
    batch = pa.record_batch([range(20_000), texts, [[each] for each in texts]], schema=WORDS)
    slices = [batch.slice(start, 10) for start in range(0, 200, 10)]
    stream = stored(tmp_path, Rows(slices))
    schema = answer_schema(stream.schema)
    (only,) = await words(stream)
    assert only.chunk.size_bytes < 100_000
    store = FolderResultStore(tmp_path)
    batches = [each async for each in store.read_chunk("answer", only.chunk)]
    assert pa.Table.from_batches(batches, schema=schema).to_pylist() == [
        row for piece in slices for row in piece.to_pylist()
    ]


async def test_statement_with_an_order_is_stored_as_it_would_be_answered(tmp_path: Path) -> None:
    local = LocalExecutor(EngineSettings(2))
    local.install(snapshot({"t": memory(a=list(range(30_000)), b=["x", None, "z"] * 10_000)}))
    sql = "SELECT a, arrow_cast(b, 'Utf8View') AS v, a / 3 AS c FROM t ORDER BY a DESC"
    plain = await local.execute(new_query_id(), Statement(sql, {}))
    expected = pa.Table.from_batches([batch async for batch in plain], schema=plain.schema)
    stream = await local.execute(new_query_id(), Statement(sql, {}, store=order(tmp_path)))
    table = await read_back(tmp_path, stream)
    assert table.schema == expected.schema
    assert table.equals(expected)
    local.close()


async def test_statement_that_writes_says_so_and_stores_its_count(tmp_path: Path) -> None:
    local = LocalExecutor(EngineSettings(2))
    local.install(snapshot({"t": memory(a=[1])}))
    writable = frozenset({TableName("t")})
    insert = Statement("INSERT INTO t VALUES (2), (3)", {}, True, writable, order(tmp_path))
    stream = await local.execute(new_query_id(), insert)
    assert stream.written == "t"
    assert (await read_back(tmp_path, stream)).to_pylist() == [{"count": 2}]
    local.close()


async def test_nothing_is_written_when_there_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    local = LocalExecutor(EngineSettings(2))
    local.install(snapshot({"t": memory(a=[1])}))
    writable = frozenset({TableName("t")})
    insert = Statement("INSERT INTO t VALUES (2)", {}, True, writable, order(tmp_path / "file"))
    with pytest.raises(ResultStoreError):
        await local.execute(new_query_id(), insert)
    stream = await local.execute(new_query_id(), Statement("SELECT count(*) AS n FROM t", {}))
    assert [batch.to_pylist() async for batch in stream] == [[{"n": 1}]]
    local.close()


async def test_explain_is_stored_too(tmp_path: Path) -> None:
    local = LocalExecutor(EngineSettings(2))
    local.install(snapshot({"t": memory(a=[1])}))
    statement = Statement("EXPLAIN SELECT a FROM t", {}, store=order(tmp_path))
    table = await read_back(tmp_path, await local.execute(new_query_id(), statement))
    assert table.column_names == ["plan_type", "plan"]
    local.close()


async def test_task_with_an_order_gives_word_page_by_page(tmp_path: Path) -> None:
    of = worker({})
    rows = pa.table({"v": pa.arange(0, 3_000_000)})
    schema = pa.schema([("value", pa.int32())])
    run = task("SELECT v FROM $t", {"$t": NUMBERS}, store=order(tmp_path, schema=schema))
    page = await of.open_task(run, [rows_of("t", rows)])
    assert page.schema is not None and answer_schema(page.schema) == schema
    batches = list(page.batches)
    while not page.is_last:
        page = await of.next(page.cursor)
        batches += page.batches
    chunks = in_order(word for batch in batches for word in unpack(batch))
    assert sum(chunk.row_count for chunk in chunks) == 3_000_000
    assert not of._calls and not len(of._cursors)
    await of.aclose()


def texts(start: int, count: int) -> pa.RecordBatch:
    words = [f"a text of more than twelve: {n:04d}" for n in range(start, start + count)]
    return pa.record_batch({"w": pa.array(words, pa.string_view())})


async def test_small_batches_of_views_become_one_batch_a_chunk(tmp_path: Path) -> None:
    small = [texts(start, 10) for start in range(0, 1000, 10)]
    stream = stored(tmp_path, Rows(small), first_rows=20, chunk_bytes=4 * small[0].nbytes)

    found = await words(stream)

    assert [each.chunk.row_count for each in found][:3] == [20, 40, 40]
    store = FolderResultStore(tmp_path)
    read = [[batch async for batch in store.read_chunk("answer", each.chunk)] for each in found]
    assert {len(batches) for batches in read} == {1}
    assert pa.Table.from_batches(batch for each in read for batch in each) == pa.Table.from_batches(
        small
    )


async def test_views_take_no_text_of_other_rows_along(tmp_path: Path) -> None:
    whole = texts(0, 1000)
    small = [whole.slice(start, 10) for start in range(0, 1000, 10)]
    stream = stored(tmp_path, Rows(small), first_rows=10, chunk_bytes=1000)

    found = await words(stream)

    assert len(found) > 10
    assert max(each.chunk.size_bytes for each in found) < whole.nbytes / 4


async def test_rows_that_are_kept_are_compact_and_what_a_reader_would_get(tmp_path: Path) -> None:
    kept: list[tuple[ChunkInfo, list[pa.RecordBatch]]] = []
    texts = [f"{n:>40}" for n in range(20_000)]
    batch = pa.record_batch([range(20_000), texts, [[each] for each in texts]], schema=WORDS)
    rows = Rows([batch.slice(start, 10) for start in range(0, 200, 10)])
    kept_order = order(tmp_path, is_kept=True, first_rows=100, chunk_bytes=1)
    store = FolderResultStore(tmp_path)
    stream = StoringStream(rows, kept_order, store, keep=lambda *each: kept.append(each), home="e1")
    found = [each.chunk for each in await words(stream)]
    kept.sort(key=lambda each: each[0].index)  # Chunks are written side by side.
    assert [each for each, _ in kept] == found
    assert {each.home for each in found} == {"e1"}
    for chunk, batches in kept:
        read = [each async for each in store.read_chunk("answer", chunk)]
        assert batches == read
        assert sum(each.nbytes for each in batches) < 100_000


async def test_rows_of_a_task_are_named_and_typed_by_it(tmp_path: Path) -> None:
    batch = pa.record_batch({"sum(x)": [1, 2], "y": pa.array(["a", "b"], pa.string_view())})
    named = pa.schema([("c0", pa.int64()), ("c1", pa.string_view())])
    store = FolderResultStore(tmp_path)
    schema = pa.schema([("total", pa.int32()), ("name", pa.string())])
    stream = StoringStream(Rows([batch]), order(tmp_path, schema=schema), store, named)
    table = await read_back(tmp_path, stream)
    assert table.schema == schema
    assert table.to_pylist() == [{"total": 1, "name": "a"}, {"total": 2, "name": "b"}]


async def test_rows_nobody_keeps_have_no_home(tmp_path: Path) -> None:
    store = FolderResultStore(tmp_path)
    stream = StoringStream(Rows([numbers(0)]), order(tmp_path), store, home="e1")
    assert [each.chunk.home for each in await words(stream)] == [""]


async def test_closing_that_is_cancelled_closes_the_rows(tmp_path: Path) -> None:
    rows = StubbornRows(pa.record_batch({"n": [1]}))
    stream = StoringStream(rows, order(tmp_path), FolderResultStore(tmp_path))
    reading = asyncio.ensure_future(anext(stream))
    for _ in range(10):
        await asyncio.sleep(0)
    closing = asyncio.ensure_future(stream.aclose())
    await cancel_in_clean_up(closing, rows)
    assert rows.is_closed
    rows.may_end.set()
    reading.cancel()
    await asyncio.wait((reading,), timeout=60)
