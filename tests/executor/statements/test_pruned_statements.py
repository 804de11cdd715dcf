"""Statements of one process leave out partitions, too, and answer as ever."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import Op
from caraway_core.errors import ExecutionError
from caraway_core.ids import new_query_id
from caraway_core.partitions.naming import values_of
from caraway_core.statements import Statement
from caraway_core.tables import Keys, StoredTable
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions import versions
from caraway_executor.statements.local import LocalExecutor
from tests.kit.changes import logged
from tests.kit.engine import snapshot
from tests.kit.stored import parted, path_of

ROWS = pa.table({"k": [n % 10 for n in range(500)], "v": range(500)})


@pytest.fixture(autouse=True)
def any_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "PRUNED_BYTES", 0)


async def executor(folder: Path, *gone: int) -> tuple[LocalExecutor, StoredTable]:
    """Make an executor that can read all partitions but those."""
    spec = await parted(folder, ROWS, "k")
    for number, chunk in enumerate(spec.chunks):
        if values_of(chunk.partition)[0] in gone:
            path_of(spec, number).unlink()
    made = LocalExecutor(EngineSettings(2))
    assert not made.install(snapshot({"t": spec, "w": "SELECT v AS x, k FROM t"}))
    return made, spec


async def test_changes_are_seen_whichever_partition_they_are_of(tmp_path: Path) -> None:
    for terms in ("k",), ("bucket(8, k)",):
        folder = tmp_path / terms[0]
        rows = pa.table({"k": range(100), "v": range(100)})
        spec = await parted(folder, rows, *terms, keys=Keys(("k",)))
        entry = await logged(folder, spec, (Op.UPSERT, {"k": 7, "v": -7}), (Op.DELETE, {"k": 8}))
        made = LocalExecutor(EngineSettings(2))
        assert not made.install(snapshot({"t": spec}))
        for logs, expected in (({}, [7, 8]), ({spec.key: (entry,)}, [-7]), ({}, [7, 8])):
            sql = "SELECT v FROM t WHERE k IN (7, 8) AND v < 90 ORDER BY v"
            stream = await made.execute(new_query_id(), Statement(sql, {}, logs=logs))
            found = [row["v"] async for batch in stream for row in batch.to_pylist()]
            assert found == expected
        made.close()


async def test_a_row_that_another_partition_replaces_stays_replaced(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 1], "k": [1, 2]})
    spec = await parted(tmp_path, rows, "k", keys=Keys(("id",), twice="last"))
    made = LocalExecutor(EngineSettings(2))
    assert not made.install(snapshot({"t": spec}))
    assert await ask(made, "SELECT count(*) AS n FROM t WHERE k = 1") == [{"n": 0}]
    assert await ask(made, "SELECT count(*) AS n FROM t WHERE k = 2") == [{"n": 1}]
    made.close()


async def ask(made: LocalExecutor, sql: str, **values: Any) -> list[dict[str, Any]]:
    stream = await made.execute(new_query_id(), Statement(sql, values))
    assert stream.reads_only_catalog
    return [row async for batch in stream for row in batch.to_pylist()]


async def test_partitions_that_no_row_is_wanted_of_are_not_read(tmp_path: Path) -> None:
    made, _ = await executor(tmp_path, *range(2, 10))
    for _ in range(2):
        for k in (0, 1):
            for sql in (
                f"SELECT count(*) AS n, min(v) AS m FROM t WHERE k = {k}",
                f"SELECT count(*) AS n, min(x) AS m FROM w WHERE k = {k}",
                f"SELECT count(*) AS n, min(a.v) AS m FROM t a JOIN t b USING (v) "
                f"WHERE a.k = {k} AND b.k = {k}",
            ):
                assert await ask(made, sql) == [{"n": 50, "m": k}]
    assert await ask(made, "SELECT count(*) AS n FROM t WHERE k = $k", k=1) == [{"n": 50}]
    assert await ask(made, "SELECT count(*) AS n FROM t WHERE k IN (0, 1)") == [{"n": 100}]
    assert await ask(made, "SELECT count(*) AS n FROM t WHERE k = 77") == [{"n": 0}]
    with pytest.raises(ExecutionError, match=r"dataset 't': a part"):
        await ask(made, "SELECT count(*) AS n FROM t WHERE k = 2")
    made.close()


async def test_one_statement_may_read_a_part_and_the_next_one_all(tmp_path: Path) -> None:
    made, _ = await executor(tmp_path)
    for _ in range(2):
        assert await ask(made, "SELECT count(*) AS n FROM t WHERE k = 3") == [{"n": 50}]
        assert await ask(made, "SELECT count(*) AS n FROM t") == [{"n": 500}]
        assert await ask(made, "SELECT count(*) AS n FROM t WHERE k = 4 OR v = 3") == [{"n": 51}]
    made.close()
