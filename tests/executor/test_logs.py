"""Accelerated datasets with a log, as statements and tasks read them."""

import asyncio
import gc
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import Log, LogEntry, Op
from caraway_core.errors import ExecutionError, OutOfMemoryQueryError
from caraway_core.ids import TableName, new_query_id
from caraway_core.partitions import naming
from caraway_core.pieces import StoredPiece
from caraway_core.protocols.fleet import Share
from caraway_core.statements import Statement
from caraway_core.tables import Keys, LookupColumns, StoredTable, TableSpec
from caraway_engine.stored import ChunksAwayError, MissingChunks, StoredVersion
from caraway_executor.resources.room import TaskMemory
from caraway_executor.statements.local import LocalExecutor
from caraway_executor.storage.chunks import KeptChunks
from caraway_executor.storage.stores import Stores
from tests.executor.stored_numbers import executor
from tests.kit.changes import bucketed, logged, offset
from tests.kit.deadlines import eventually
from tests.kit.engine import memory, snapshot
from tests.kit.fragments import task
from tests.kit.stored import path_of, stored

T = TableName("t")
KEYS = Keys(("k",), "refuse", (LookupColumns(("g",)),))
NUMBERS = pa.table({"k": pa.array(range(1000)), "g": pa.array([n % 7 for n in range(1000)])})
SCHEMAS = {"t": NUMBERS.schema, "m": pa.schema([("k", pa.int64())])}
SUM = "SELECT count(*) AS n, sum(k) AS k, sum(g) AS g FROM t"


async def keyed(folder: Path, count: int = 4, **facts: Any) -> StoredTable:
    return replace(await stored(folder, NUMBERS, count), keys=KEYS, **facts)


async def entries(folder: Path, spec: StoredTable, count: int) -> list[LogEntry]:
    """Make entries of which each deletes key i, sets g of key 500 + i, and adds key 1000 + i."""
    return [
        await logged(
            folder,
            spec,
            (Op.DELETE, {"k": i}),
            (Op.UPSERT, {"k": 500 + i, "g": 100}),
            (Op.UPSERT, {"k": 1000 + i, "g": 0}),
            number=i,
        )
        for i in range(count)
    ]


def wanted(count: int) -> dict[str, int]:
    rows = {k: k % 7 for k in range(1000)}
    for i in range(count):
        del rows[i]
        rows |= {500 + i: 100, 1000 + i: 0}
    return {"n": len(rows), "k": sum(rows), "g": sum(rows.values())}


async def ask(local: LocalExecutor, sql: str, spec: StoredTable, log: Sequence[LogEntry],
              **options: Any) -> list[dict[str, Any]]:  # fmt: skip
    statement = Statement(sql, {}, logs={spec.key: tuple(log)}, **options)
    stream = await local.execute(new_query_id(), statement)
    return [row async for batch in stream for row in batch.to_pylist()]


async def one(local: LocalExecutor, spec: StoredTable, log: Log | list[LogEntry]) -> Any:
    return (await ask(local, SUM, spec, log))[0]


async def test_each_statement_reads_its_own_position(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    local = executor({"t": spec})
    log = await entries(tmp_path, spec, 5)

    for count in (0, 5, 3, 5, 1, 0, 4):
        assert await one(local, spec, log[:count]) == wanted(count)


async def test_positions_are_right_when_all_come_at_once(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    local = executor({"t": spec, "v": "SELECT * FROM t"})
    log = await entries(tmp_path, spec, 8)
    join = "SELECT count(*) AS n FROM t JOIN v USING (k, g)"
    counts = [0, 8, 3, 5, 8, 1, 7, 2, 4, 6] * 3

    found = await asyncio.gather(*(one(local, spec, log[:count]) for count in counts))
    joined = await asyncio.gather(*(ask(local, join, spec, log[:count]) for count in counts))

    assert found == [wanted(count) for count in counts]
    assert joined == [[{"n": wanted(count)["n"]}] for count in counts]


async def test_one_statement_reads_one_position_everywhere(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    tables: dict[str, TableSpec | str] = {
        "t": spec,
        "v": "SELECT k, g FROM t",
        "w": "SELECT count(*) AS n FROM v",
        "other": memory(k=[1]),
        "x": "SELECT k FROM other",
    }
    local = executor(tables)
    log = await entries(tmp_path, spec, 3)
    sql = (
        "SELECT (SELECT n FROM w) AS w, (SELECT count(*) FROM t) AS t, "
        "(SELECT count(*) FROM t a JOIN t b ON a.k = b.k JOIN v ON v.k = a.k) AS j, "
        "(SELECT max(k) FROM v) AS m, (SELECT count(*) FROM x) AS x"
    )
    for count in (0, 3, 1, 0, 3):
        n = wanted(count)["n"]
        m = 999 + count
        assert await ask(local, sql, spec, log[:count]) == [
            {"w": n, "t": n, "j": n, "m": m, "x": 1}
        ]


async def test_statements_of_every_kind_read_the_log(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    m = TableName("m")
    local = executor({"t": spec, "m": memory(k=[0]), "v": "SELECT * FROM t"})
    log = await entries(tmp_path, spec, 2)

    await ask(local, "INSERT INTO m SELECT k FROM t WHERE k >= 1000", spec, log,
              may_write=True, writable=frozenset({m}))  # fmt: skip
    assert await ask(local, "SELECT sum(k) AS k FROM m", spec, ()) == [{"k": 2001}]
    product = "SELECT count(*) AS n FROM t JOIN m ON t.k < m.k WHERE m.k = 0 OR t.k < 4"
    assert await ask(local, product, spec, log) == [{"n": 4}]
    bound = Statement("SELECT g FROM t WHERE k = $1", {"1": 501}, logs={spec.key: tuple(log)})
    stream = await local.execute(new_query_id(), bound)
    assert [batch.to_pylist() async for batch in stream if batch.num_rows] == [[{"g": 100}]]
    assert not stream.reads_only_catalog
    analysed = await ask(local, "EXPLAIN ANALYZE SELECT k FROM v WHERE g = 100", spec, log)
    assert "output_rows=2" in str(analysed)


async def test_a_log_of_another_base_is_not_read(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    local = executor({"t": spec})
    log = await entries(tmp_path, spec, 1)

    assert await one(local, replace(spec, key="before"), log) == wanted(0)


async def test_a_log_that_is_not_longer_but_another_is_read_anew(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    local = executor({"t": spec})
    log = await entries(tmp_path, spec, 4)
    assert await one(local, spec, log) == wanted(4)

    alone = executor({"t": spec})
    assert await one(local, spec, [log[2]]) == await one(alone, spec, [log[2]]) != wanted(1)
    assert await one(local, spec, log) == wanted(4)


async def test_tasks_read_shares_and_whole_tables_where_the_log_says(tmp_path: Path) -> None:
    spec = await bucketed(tmp_path, NUMBERS, 8, "k", KEYS)
    local = executor({"t": spec, "m": memory(k=[1, 2, 1001])})
    log = tuple(await entries(tmp_path, spec, 3))
    names = [naming.name_of([number]) for number in range(8)]
    for count in (3, 1, 0, 2):
        logs = {spec.key: log[:count]}
        total = 0
        for held in (names[:3], names[3:4], names[4:]):
            share = Share(T, tuple(StoredPiece(name) for name in held))
            run = task("SELECT sum(k) AS k FROM t", SCHEMAS, shares=[share])
            stream = await local.run_task(replace(run, logs=logs), ())
            total += sum([batch.column(0)[0].as_py() async for batch in stream])
        assert total == wanted(count)["k"]
        whole = task("SELECT count(*) FROM t JOIN m USING (k)", SCHEMAS)
        stream = await local.run_task(replace(whole, logs=logs), ())
        found = [batch.column(0)[0].as_py() async for batch in stream]
        assert found == [1 if count == 3 else 2]


async def test_pieces_are_buckets_also_without_rows(tmp_path: Path) -> None:
    spec = await bucketed(tmp_path, NUMBERS.slice(0, 1), 4, "k", KEYS)
    local = executor({"t": spec})
    assert local.session is not None
    pieces = local.session.pieces(T)
    assert pieces is not None

    assert [each.name for each in pieces] == [naming.name_of([n]) for n in range(4)]
    assert sum(each.size_bytes for each in pieces) == spec.chunks[0].size_bytes
    rows = [await local.load(T, spec, (), [each.name]) for each in pieces]
    assert sorted(rows) == [0, 0, 0, 1]


async def test_a_load_counts_the_rows_of_base_and_log(tmp_path: Path) -> None:
    for spec in (await keyed(tmp_path), await bucketed(tmp_path, NUMBERS, 4, "k", KEYS, "b")):
        local = executor({"t": memory(k=[1])})
        log = await entries(tmp_path, spec, 3)
        assert await local.load(T, spec, (), None) == 1000
        assert await local.load(T, spec, tuple(log)) == 1000
        more = await logged(tmp_path, spec, (Op.UPSERT, {"k": 9999}), number=9)
        assert await local.load(T, spec, (*log, more)) == 1001
        for number in range(len(spec.chunks)):
            path_of(spec, number).unlink()
        local.install(snapshot({"t": spec}, version=2))
        assert await one(local, spec, log) == wanted(3)


@pytest.mark.parametrize(("twice", "g"), [("first", 0), ("last", 2)])
async def test_of_rows_with_one_key_one_counts(tmp_path: Path, twice: Any, g: int) -> None:
    rows = pa.table({"k": [5, 6, 5, 5], "g": [0, 1, 9, 2]})
    spec = replace(await stored(tmp_path, rows, 4), keys=Keys(("k",), twice))
    local = executor({"t": spec})

    assert await local.load(T, spec) == 2
    assert await one(local, spec, ()) == {"n": 2, "k": 11, "g": g + 1}


async def test_rows_with_one_key_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"k": [5, 6, 5], "g": ["a", "b", "a"]})
    spec = await stored(tmp_path, rows, 2)
    local = executor({"t": memory(k=[1])})

    with pytest.raises(ExecutionError, match=r"dataset 't': primary key \(k\) = 5 is duplicated"):
        await local.load(T, replace(spec, keys=Keys(("k",))))
    with pytest.raises(ExecutionError, match=r"primary key \(g, k\) = 'a', 5 is duplicated"):
        await local.load(T, replace(spec, keys=Keys(("g", "k"))))
    assert await local.load(T, replace(spec, keys=Keys(("k",), "same"))) == 2
    other = await stored(tmp_path, pa.table({"k": [5, 5], "g": ["a", None]}), 2, "other")
    with pytest.raises(ExecutionError, match="with other values"):
        await local.load(T, replace(other, keys=Keys(("k",), "same")))
    unique = Keys(("k",), "first", (LookupColumns(("g",), True),))
    assert await local.load(T, replace(spec, keys=unique)) == 2
    twice = await stored(tmp_path, pa.table({"k": [5, 6], "g": ["a", "a"]}), 2, "twice")
    with pytest.raises(ExecutionError, match=r"\(g\) = 'a' is duplicated .* `unique`"):
        await local.load(T, replace(twice, keys=unique))


async def test_keys_without_a_value_are_refused(tmp_path: Path) -> None:
    spec = await stored(tmp_path, pa.table({"k": [5, None]}))
    local = executor({"t": memory(k=[1])})

    with pytest.raises(ExecutionError, match="'k' of its primary key contains NULL"):
        await local.load(T, replace(spec, keys=Keys(("k",))))


async def test_rows_are_found_by_key_and_by_index(tmp_path: Path) -> None:
    for spec in (await keyed(tmp_path), await bucketed(tmp_path, NUMBERS, 4, "k", KEYS, "b")):
        local = executor({"t": spec})
        log = tuple(await entries(tmp_path, spec, 3))
        assert local.session is not None
        version = local.session.versions.by_name[T]
        with pytest.raises(ChunksAwayError):
            version.rows_of(("k",), (1,), local._chunks, log)
        await local.load(T, spec, log)
        await local.load(T, spec)

        def found(column: str, value: Any, count: int) -> list[dict[str, Any]]:
            rows = version.rows_of((column,), (value,), local._chunks, log[:count])  # noqa: B023
            assert rows.schema.equals(NUMBERS.schema)
            return list(rows.to_pylist())

        for count in (3, 0, 2, 1):
            assert found("k", 1, count) == ([] if count > 1 else [{"k": 1, "g": 1}])
            assert found("k", 500, count) == [{"k": 500, "g": 100 if count else 500 % 7}]
            assert found("k", 1000, count) == ([{"k": 1000, "g": 0}] if count else [])
            assert len(found("g", 100, count)) == count
        assert found("k", -5, 3) == found("k", None, 3) == []
        assert found("k", pa.scalar(7), 3) == [{"k": 7, "g": 0}]
        with pytest.raises(ExecutionError, match=r"no index of the columns \(k, g\)"):
            version.rows_of(("k", "g"), (1, 1), local._chunks)


async def test_what_does_not_fit_leaves_the_position_before(tmp_path: Path) -> None:
    rows = pa.table({"k": pa.array(range(200_000)), "g": pa.array(range(200_000))})
    spec = replace(await stored(tmp_path, rows, 4), keys=Keys(("k",)))
    local = executor({"t": spec}, 8_500_000)
    small = await logged(tmp_path, spec, (Op.DELETE, {"k": 199_999}))
    assert (await one(local, spec, [small]))["n"] == 199_999
    much = [(Op.UPSERT, {"k": k, "g": 0}) for k in range(50_000)]
    large = await logged(tmp_path, spec, *much, number=1)

    with pytest.raises(
        OutOfMemoryQueryError, match=r"dataset 't' does not fit .* changes.*Refresh"
    ):
        await one(local, spec, [small, large])

    assert (await one(local, spec, [small]))["n"] == 199_999
    with pytest.raises(OutOfMemoryQueryError, match=r"dataset 't' does not fit .* indexes"):
        executor_of_less = executor({"t": spec}, 4_000_000)
        await one(executor_of_less, spec, [])


async def test_memory_of_positions_that_nobody_reads_is_given_back(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    local = executor({"t": spec})
    log = await entries(tmp_path, spec, 40)
    for count in range(41):
        assert await one(local, spec, log[:count]) == wanted(count)
    room = local._chunks._room
    gc.collect()
    # Base and indexes, one filtered copy, and what changed.
    assert room.taken_bytes < 6 * NUMBERS.nbytes + 60_000

    local.install(snapshot({"t": memory(k=[1])}, version=2))

    async def is_empty() -> bool:
        gc.collect()
        return room.taken_bytes == 0

    assert await eventually(is_empty, "all of it is given back")


async def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    local = executor({"t": spec})
    entry = await logged(tmp_path, spec, (Op.DELETE, {"k": 1}, offset(1)))
    gone = replace(entry, chunk=replace(entry.chunk, checksum="0" * 64))

    with pytest.raises(
        ExecutionError, match=r"dataset 't': a part of its stored rows is damaged or missing"
    ):
        await one(local, spec, [gone])
    assert await one(local, spec, []) == wanted(0)


async def test_partitions_that_others_have_by_now_are_let_go(tmp_path: Path) -> None:
    now_s = 0.0
    spec = await bucketed(tmp_path, NUMBERS, 4, "k", KEYS)
    log = tuple(await entries(tmp_path, spec, 2))
    chunks = KeptChunks(Stores(), TaskMemory())
    version = StoredVersion(T, spec, 2, lambda: now_s)
    held = await chunks.bring(
        [MissingChunks(T, spec, (*spec.chunks, *(each.chunk for each in log)))]
    )
    assert version.at(log).load(version.names, chunks) == 1000
    del held

    now_s = 100.0
    for key in range(100):
        version.rows_of(("k",), (key,), chunks, log)
    version.let_go()
    # Looking up needs all of it, wherever the keys are that were wanted last.
    assert len(version.rows_of(("g",), (100,), chunks, log)) == 2

    assert version.at(log).load(version.names[:2], chunks) < 1000
    now_s = 200.0
    assert version.at(log).load(version.names[:2], chunks) < 1000
    version.let_go()
    assert len(version.content.lineage._merged) == 2


async def test_plans_of_positions_before_are_let_go(tmp_path: Path) -> None:
    spec = await keyed(tmp_path)
    local = executor({"t": spec})
    log = await entries(tmp_path, spec, 3)
    assert local.session is not None
    version = local.session.versions.by_name[T]
    for number in range(20):
        await ask(local, f"SELECT {number} FROM t LIMIT 1", spec, log[:1])
    before = weakref.ref(version.at(tuple(log[:1])))

    # One with a parameter, whose plan is not kept.
    bound = Statement("SELECT max(g) FROM t WHERE k > $1", {"1": 501}, logs={spec.key: tuple(log)})
    stream = await local.execute(new_query_id(), bound)
    assert [batch async for batch in stream]

    async def is_gone() -> bool:
        gc.collect()
        return before() is None

    assert await eventually(is_gone, "the position before is let go")
