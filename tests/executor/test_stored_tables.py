import asyncio
import gc
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, OutOfMemoryQueryError, QueryForbiddenError
from caraway_core.ids import TableName, new_query_id
from caraway_core.pieces import StoredPiece
from caraway_core.protocols.fleet import Share, Task
from caraway_core.statements import Statement
from caraway_core.tables import StoredTable
from caraway_engine.stored import MissingChunks, StoredVersion
from caraway_executor.resources.room import TaskMemory
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.storage import chunks
from caraway_executor.storage.chunks import KeptChunks
from caraway_executor.storage.stores import Stores
from tests.executor.stored_numbers import NUMBERS, everything, executor
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot
from tests.kit.fragments import task
from tests.kit.stored import path_of, stored
from tests.kit.turns import turn

T = TableName("t")
SCHEMAS = {"t": pa.schema([("k", pa.int64()), ("g", pa.int64())])}


async def table(local: LocalExecutor, sql: str, **options: Any) -> pa.Table:
    stream = await local.execute(new_query_id(), Statement(sql, {}, **options))
    batches = [batch async for batch in stream]
    return pa.Table.from_batches(batches, schema=stream.schema)


async def value(local: LocalExecutor, sql: str) -> object:
    return (await table(local, sql)).column(0)[0].as_py()


async def freed(local: LocalExecutor) -> bool:
    gc.collect()
    return local._chunks._room.taken_bytes == 0


async def answer(local: LocalExecutor, run: Task) -> object:
    stream = await local.run_task(run, ())
    values = [batch.column(0)[0].as_py() async for batch in stream]
    return values[0]


def share(names: Sequence[str]) -> Share:
    return Share(T, tuple(StoredPiece(name) for name in names))


@pytest.mark.parametrize("count", [1, 3])
async def test_every_type_is_read_as_it_was_stored(tmp_path: Path, count: int) -> None:
    rows = everything()
    local = executor({"t": await stored(tmp_path, rows, count)})

    found = await table(local, "SELECT * FROM t ORDER BY i NULLS LAST")

    # NaN is not equal to itself, so the texts are compared.
    wanted = rows.to_pylist()
    assert found.schema.types == rows.schema.types
    assert str(found.to_pylist()) == str([wanted[0], wanted[2], wanted[1]])


async def test_a_column_that_may_not_be_null_stays_so(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False)], metadata={"a": "b"})
    local = executor({"t": await stored(tmp_path, pa.table({"k": [1, 2]}, schema=schema))})

    assert not (await table(local, "SELECT k FROM t")).schema.field("k").nullable


async def test_a_version_without_chunks_is_an_empty_table(tmp_path: Path) -> None:
    local = executor({"t": await stored(tmp_path, NUMBERS.slice(0, 0))})

    assert (await table(local, "SELECT * FROM t")).num_rows == 0
    assert await value(local, "SELECT count(*) FROM t") == 0


async def test_statements_plan_before_and_after_the_rows_came(tmp_path: Path) -> None:
    local = executor({
        "t": await stored(tmp_path, NUMBERS, 5),
        "v": "SELECT g, count(*) AS n FROM t GROUP BY g",
        "w": "SELECT sum(n) AS n FROM v",
        "m": memory(g=[1, 2]),
    })  # fmt: skip
    await table(local, "EXPLAIN SELECT count(*) FROM t")
    assert not local.holds

    for _ in range(2):
        assert await value(local, "SELECT n FROM w") == 1000
        assert await value(local, "SELECT count(*) FROM t") == 1000
        assert await value(local, "SELECT count(*) FROM t JOIN m USING (g)") == 286
        assert await value(local, "SELECT max(k) FROM t WHERE k < 500") == 499
    assert local.holds == (T,)


async def test_a_statement_that_reads_it_twice_or_not_at_all(tmp_path: Path) -> None:
    local = executor({"t": await stored(tmp_path, NUMBERS, 2)})

    assert await value(local, "SELECT 1") == 1
    assert not local.holds
    assert await value(local, "SELECT count(*) FROM t a JOIN t b ON a.k = b.k") == 1000
    assert await value(local, "SELECT (SELECT max(k) FROM t)") == 999


async def test_two_versions_side_by_side_share_their_chunks(tmp_path: Path) -> None:
    one = await stored(tmp_path, NUMBERS, 4)
    two = replace(one, chunks=one.chunks[:3])
    local = executor({"t": one, "u": two})
    assert await value(local, "SELECT count(*) FROM t") == 1000
    path_of(one).unlink()

    # Its chunks are in memory already.
    assert await value(local, "SELECT count(*) FROM u") == 750


async def test_a_chunk_that_is_named_twice_is_read_twice(tmp_path: Path) -> None:
    one = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": replace(one, chunks=(*one.chunks, one.chunks[0]))})

    assert await value(local, "SELECT count(*) FROM t") == 1250


async def test_statements_keep_the_version_that_they_began_with(tmp_path: Path) -> None:
    rows = pa.table({"k": pa.array(range(500_000))})
    local = executor({"t": await stored(tmp_path, rows, 4)})
    before = await local.execute(new_query_id(), Statement("SELECT k FROM t", {}))
    local.install(snapshot({"t": await stored(tmp_path, NUMBERS, key="u")}, version=2))

    assert await value(local, "SELECT count(*) FROM t") == 1000
    assert sum([batch.num_rows async for batch in before]) == 500_000


async def test_memory_is_freed_when_the_last_session_goes(tmp_path: Path) -> None:
    rows = pa.table({"k": pa.array(range(500_000))})
    local = executor({"t": await stored(tmp_path, rows, 4)})
    room = local._chunks._room
    before = pa.total_allocated_bytes()
    assert await value(local, "SELECT count(*) FROM t") == 500_000
    assert room.taken_bytes > 4_000_000
    held = weakref.ref(local.session)

    small = await stored(tmp_path, NUMBERS, key="u")
    local.install(snapshot({"t": small}, version=2))

    assert await eventually(lambda: freed(local), "the version is let go")
    assert held() is None
    assert pa.total_allocated_bytes() < before + 1_000_000


async def test_unchanged_versions_stay_in_memory(tmp_path: Path) -> None:
    one = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": one, "u": await stored(tmp_path, NUMBERS, key="u")})
    assert await value(local, "SELECT count(*) FROM t, (SELECT count(*) FROM u)") == 1000
    for each in range(4):
        path_of(one, each).unlink()

    local.install(snapshot({"t": replace(one), "u": memory(k=[1])}, version=2))

    assert await value(local, "SELECT count(*) FROM t") == 1000


async def test_all_statements_that_come_at_once_read_each_chunk_once(tmp_path: Path) -> None:
    local = executor({"t": await stored(tmp_path, NUMBERS, 20)})
    asking = [value(local, f"SELECT count(*) + {n} FROM t") for n in range(20)]

    assert await asyncio.gather(*asking) == [1000 + n for n in range(20)]
    gc.collect()
    assert local._chunks._room.taken_bytes < 2 * NUMBERS.nbytes + 20_000


@pytest.mark.parametrize("change", ["gone", "damaged", "short"])
async def test_a_chunk_that_cannot_be_read_is_named(tmp_path: Path, change: str) -> None:
    spec = await stored(tmp_path, NUMBERS, 4)
    path = path_of(spec, 2)
    content = path.read_bytes()
    local = executor({"t": spec, "u": memory(k=[1])})
    path.unlink()
    if change != "gone":
        path.write_bytes(content[:-9] if change == "short" else content[:-9] + bytes(9))
    with pytest.raises(
        ExecutionError, match=r"dataset 't': a part of its stored rows is damaged or missing"
    ):
        await value(local, "SELECT sum(k) FROM t")

    assert await value(local, "SELECT k FROM u") == 1
    assert await eventually(lambda: freed(local), "what was read is let go")
    path.write_bytes(content)
    assert await value(local, "SELECT sum(k) FROM t") == 499_500


async def test_rows_of_other_types_than_the_version_says_are_refused(tmp_path: Path) -> None:
    spec = await stored(tmp_path, NUMBERS)
    other = pa.schema([("k", pa.string()), ("g", pa.int64())])
    local = executor({"t": replace(spec, schema=other)})

    with pytest.raises(ExecutionError, match=r"dataset 't': .*types of its stored rows differ"):
        await value(local, "SELECT k FROM t")


async def test_what_does_not_fit_leaves_the_version_before(tmp_path: Path) -> None:
    big = await stored(tmp_path, pa.table({"k": pa.array(range(2_000_000))}), 4, "big")
    local = executor({"t": await stored(tmp_path, NUMBERS)}, 12_000_000)
    assert await value(local, "SELECT count(*) FROM t") == 1000

    with pytest.raises(OutOfMemoryQueryError, match=r"dataset 't' does not fit .* 11 MiB"):
        await local.load(T, big)

    assert await value(local, "SELECT count(*) FROM t") == 1000
    local.install(snapshot({"t": big, "u": memory(k=[1])}, version=2))
    with pytest.raises(OutOfMemoryQueryError, match=r"dataset 't' does not fit"):
        await value(local, "SELECT count(*) FROM t")
    assert await value(local, "SELECT count(*) FROM u") == 1


async def test_a_version_is_loaded_before_a_catalog_names_it(tmp_path: Path) -> None:
    one = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": memory(k=[1])})

    assert await local.load(T, one) == 1000
    for each in range(4):
        path_of(one, each).unlink()
    local.install(snapshot({"t": memory(k=[2])}, version=2))
    local.install(snapshot({"t": replace(one)}, version=3))

    assert local.holds == (T,)
    assert await value(local, "SELECT count(*) FROM t") == 1000


async def test_no_statement_writes_into_a_version(tmp_path: Path) -> None:
    spec: StoredTable = await stored(tmp_path, NUMBERS)
    local = executor({"t": spec})

    with pytest.raises(QueryForbiddenError, match="accelerated"):
        await table(local, "INSERT INTO t VALUES (1, 2)", may_write=True, writable=frozenset({T}))
    assert await value(local, "SELECT count(*) FROM t") == 1000


async def test_tasks_of_an_earlier_catalog_read_its_version_again(tmp_path: Path) -> None:
    first = await stored(tmp_path, NUMBERS, 4)
    local = executor({"t": first})
    assert await value(local, "SELECT count(*) FROM t") == 1000
    less = await stored(tmp_path, NUMBERS.slice(0, 10), key="less")
    local.prepare(snapshot({"t": less}, version=2))
    local.publish()  # The catalog before is kept: a task needs it.
    assert await eventually(lambda: freed(local), "the earlier version is let go")

    names = [each.checksum for each in first.chunks[:2]]
    run = task("SELECT count(*) FROM t", SCHEMAS, shares=[share(names)])
    assert await answer(local, run) == 500
    assert await eventually(lambda: freed(local), "the earlier version is let go")


async def test_a_share_that_others_have_by_now_is_let_go(tmp_path: Path) -> None:
    now_s = 0.0
    spec = await stored(tmp_path, NUMBERS, 4)
    chunks = KeptChunks(Stores(), TaskMemory())
    version = StoredVersion(T, spec, 2, lambda: now_s)
    held = await chunks.bring([MissingChunks(T, spec, spec.chunks)])
    for name in version.names[:2]:
        assert not isinstance(version.share((name,), chunks), MissingChunks)
        now_s += 10
    del held
    both = sum(each.size_bytes for each in spec.chunks[:2])

    async def are_alone() -> bool:
        gc.collect()
        return chunks._room.taken_bytes == both

    assert await eventually(are_alone, "only the shares hold chunks")
    version.let_go()
    assert chunks._room.taken_bytes == both
    now_s += 100
    version.let_go()

    assert chunks._room.taken_bytes == spec.chunks[1].size_bytes
    assert version.is_held


async def test_a_share_of_another_version_is_refused(tmp_path: Path) -> None:
    local = executor({"t": await stored(tmp_path, NUMBERS, 4)})
    run = task("SELECT count(*) FROM t", SCHEMAS, shares=[share(["nothing"])])

    with pytest.raises(ExecutionError, match="does not have"):
        await local.run_task(run, ())


async def test_a_share_without_chunks_is_empty(tmp_path: Path) -> None:
    local = executor({"t": await stored(tmp_path, NUMBERS, 4)})
    run = task("SELECT count(*) AS n FROM t", SCHEMAS, shares=[share([])])

    assert await answer(local, run) == 0


async def test_what_nobody_reads_any_more_makes_room_for_what_is_wanted(tmp_path: Path) -> None:
    first = await stored(tmp_path, NUMBERS, key="first")
    other = pa.table({"k": pa.array(range(1000, 2000)), "g": NUMBERS["g"]})
    second = await stored(tmp_path, other, key="second")
    stores, room = Stores(), TaskMemory(first.chunks[0].size_bytes * 3 // 2)
    kept = KeptChunks(stores, room)
    unread: list[object] = list(await kept.bring([MissingChunks(T, first, first.chunks)]))
    unread.append(unread)  # A cycle, as of a version and its views.
    gc.disable()
    try:
        del unread
        await turn()
        assert not room.has(second.chunks[0].size_bytes)

        assert len(await kept.bring([MissingChunks(T, second, second.chunks)])) == 1
    finally:
        gc.enable()


async def test_a_large_load_lets_go_of_what_nobody_reads_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await stored(tmp_path, NUMBERS, key="first")
    other = pa.table({"k": pa.array(range(1000, 2000)), "g": NUMBERS["g"]})
    second = await stored(tmp_path, other, key="second")
    room = TaskMemory()
    kept = KeptChunks(Stores(), room)
    monkeypatch.setattr(chunks, "_LARGE_BYTES", second.chunks[0].size_bytes)
    unread: list[object] = list(await kept.bring([MissingChunks(T, first, first.chunks)]))
    unread.append(unread)
    gc.disable()
    try:
        del unread
        await turn()

        read = await kept.bring([MissingChunks(T, second, second.chunks)])

        assert room.taken_bytes == second.chunks[0].size_bytes
        assert len(read) == 1
    finally:
        gc.enable()
