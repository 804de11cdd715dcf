"""Statements whose rows do not fit in memory: they spill, and answer."""

import asyncio
import contextlib
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import OutOfMemoryQueryError
from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_engine.execution import frugal
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions.sessions import Session
from caraway_executor.statements.local import LocalExecutor
from tests.kit.engine import session, snapshot
from tests.kit.stored import stored
from tests.kit.tables import parquet

COUNT = 200_000
LIMIT_BYTES = 12 * 1024 * 1024
"""Half of what the rows take."""
ROWS = pa.table({"n": list(range(COUNT)), "s": [str(number) for number in range(COUNT)]})


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Session:
    numbers = [(number * 7919) % COUNT for number in range(COUNT)]
    texts = [f"{number:012d}{'x' * 90}" for number in numbers]
    folder = tmp_path_factory.mktemp("rows") / "t"
    spec = parquet(folder, pa.table({"k": numbers, "s": texts}), 4)
    return session({"t": spec}, memory_limit_bytes=LIMIT_BYTES)


async def answer(limited: Session, sql: str) -> pa.Table:
    stream = limited.start(Statement(sql, {}))
    return pa.Table.from_batches([each async for each in stream])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, s FROM t ORDER BY s",
        "SELECT k, row_number() OVER (ORDER BY s) - 1 AS r FROM t ORDER BY r",
    ],
)
async def test_sort_larger_than_memory_answers_in_order(limited: Session, sql: str) -> None:
    rows = await answer(limited, sql)
    assert rows["k"].to_pylist() == list(range(COUNT))


@pytest.mark.parametrize("sql", ["SELECT count(DISTINCT s) FROM t",
                                 "SELECT count(*) FROM (SELECT DISTINCT s, k FROM t)"])  # fmt: skip
async def test_distinct_larger_than_memory_answers(limited: Session, sql: str) -> None:
    assert (await answer(limited, sql)).column(0).to_pylist() == [COUNT]


async def test_without_a_second_try_the_sort_fails(
    limited: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this passes in the engine by itself, `frugal` can go."""
    monkeypatch.setattr(frugal, "may_help", lambda _exc: False)
    with pytest.raises(OutOfMemoryQueryError):
        await answer(limited, "SELECT k, s FROM t ORDER BY s")


async def test_join_larger_than_memory_says_what_to_raise(limited: Session) -> None:
    with pytest.raises(OutOfMemoryQueryError) as caught:
        await answer(limited, "SELECT count(*) FROM t a JOIN t b ON a.s = b.s")
    assert "runtime.query.memory_limit" in caught.value.message
    assert "join keeps its smaller side" in caught.value.message
    assert "Reservation" not in caught.value.message and "HashJoin" not in caught.value.message
    assert (await answer(limited, "SELECT max(k) FROM t")).column(0).to_pylist() == [COUNT - 1]


async def test_a_join_of_a_union_ends_with_less_memory(tmp_path: Path) -> None:
    """Its partitions run one after another, and a filter between them must not wait for all."""
    rows = pa.table({"k": range(100)})
    of = session({"t": parquet(tmp_path / "t", rows, 2), "o": parquet(tmp_path / "o", rows, 2)})
    sql = "SELECT t.k FROM t JOIN (SELECT k FROM o UNION ALL SELECT k FROM o) u ON t.k = u.k"
    again = of._statements.startable(Statement(sql, {})).start_again
    assert again is not None
    stream, count = again(), 0
    assert isinstance(stream, frugal.ChainedPartitions) and stream._left
    async with asyncio.timeout(60):
        with contextlib.suppress(StopAsyncIteration):
            while True:
                count += (await anext(stream)).to_pyarrow().num_rows
    assert count == 200


@pytest.mark.parametrize(
    ("sql", "largest", "rows"),
    [
        ("SELECT * FROM t", 65_536, ROWS),
        ("SELECT s FROM t", 65_536, ROWS.select(["s"])),
        ("SELECT n + 1 AS n FROM t WHERE n < 9000", 8_192, pa.table({"n": range(1, 9_001)})),
        ("SELECT count(*) AS n FROM t", 1, pa.table({"n": [COUNT]})),
    ],
)
async def test_batches_are_large_where_the_engine_has_no_work(
    tmp_path: Path, sql: str, largest: int, rows: pa.Table
) -> None:
    executor = LocalExecutor(EngineSettings(2))
    executor.install(snapshot({"t": await stored(tmp_path, ROWS)}))
    stream = await executor.execute(new_query_id(), Statement(sql, {}))
    batches = [batch async for batch in stream]
    executor.close()
    assert max(batch.num_rows for batch in batches) == largest
    found = pa.Table.from_batches(batches, stream.schema).cast(rows.schema)
    by = rows.column_names[0]
    assert found.sort_by(by).equals(rows.sort_by(by))


@pytest.mark.parametrize("name", ["N", "a.b", 'say "n"', "", "größe"])
async def test_rows_are_listed_under_any_name(tmp_path: Path, name: str) -> None:
    rows = ROWS.rename_columns([name, "s"])
    executor = LocalExecutor(EngineSettings(2))
    executor.install(snapshot({"t": await stored(tmp_path, rows)}))
    stream = await executor.execute(new_query_id(), Statement("SELECT * FROM t", {}))
    batches = [batch async for batch in stream]
    executor.close()
    assert max(batch.num_rows for batch in batches) == 65_536
    found = pa.Table.from_batches(batches, stream.schema).cast(rows.schema)
    assert found.sort_by("s").equals(rows.sort_by("s"))
