"""Writes to Delta tables through the API: what is seen then, and what is refused."""

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

ROWS = pa.table({"id": pa.array([1], pa.int64()), "v": ["a"]})
MANIFEST = """
runtime:
  caching: {sql_results: {enabled: true}}
datasets:
  - {from: 'delta:t', name: t, access: read_write}
  - {from: 'delta:t', name: kept, access: read_write, acceleration: {enabled: true}}
  - {from: 'delta:t', name: closed}
  - {from: 'delta:empty', name: vacant, access: read_write}
  - {from: 'file:one.parquet', name: one, access: read_write}
"""


async def ready(runtime: Running) -> None:
    async def look() -> bool:
        listed = (await runtime.api.get("/v1/datasets?status=true")).json()
        return all(each["status"] == "ready" for each in listed)

    await eventually(look, "all datasets are ready")


async def test_rows_are_committed_and_seen_at_once(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    deltalake.write_deltalake(tmp_path / "empty", ROWS.slice(0, 0))
    pq.write_table(ROWS, tmp_path / "one.parquet")
    async with running(tmp_path, MANIFEST) as runtime:
        await ready(runtime)
        for number, table in enumerate(("t", "vacant", "vacant", "kept", "t"), start=2):
            made = await runtime.sql(f"INSERT INTO {table} (id) VALUES ({number}), (-1)")
            assert (made.status_code, made.json()) == (200, [{"count": 2}]), made.text
            found = await runtime.sql(f"SELECT id, v FROM {table} WHERE id = {number}")
            assert found.json() == [{"id": number, "v": None}], table
        # Another writer's rows are seen with the next ones.
        deltalake.write_deltalake(tmp_path / "t", ROWS, mode="append")
        made = await runtime.sql("INSERT INTO t SELECT id + 100, v FROM t")
        assert made.json() == [{"count": 7}]
        assert (await runtime.sql("SELECT count(*) AS n FROM t")).json() == [{"n": 15}]
        for sql, status, words in (
            ("INSERT INTO closed (id) VALUES (1)", 403, "read-only"),
            ("INSERT INTO one VALUES (1, 'x')", 400, "its rows are in files that are only read"),
            ("INSERT INTO t SELECT 1 / 0, 'x'", 400, "zero"),
            ("UPDATE one SET v = 'x'", 400, "its rows are in files"),
            ("DELETE FROM closed", 403, "read-only"),
            ("UPDATE t SET v = upper(v)", 400, "the new value of column 'v'"),
        ):
            answer = await runtime.sql(sql)
            assert (answer.status_code, words in answer.text) == (status, True), answer.text
            assert str(tmp_path) not in answer.text
    assert DeltaTable(tmp_path / "t").version() == 5
    assert DeltaTable(tmp_path / "empty").version() == 2


async def test_rows_are_changed_and_seen_at_once(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    deltalake.write_deltalake(tmp_path / "empty", ROWS.slice(0, 0))
    pq.write_table(ROWS, tmp_path / "one.parquet")
    merge = (
        "MERGE INTO {} USING (SELECT value AS k FROM generate_series(2, 4)) AS s ON t.id = s.k "
        "WHEN MATCHED AND t.v = 'b' THEN DELETE WHEN MATCHED THEN UPDATE SET v = t.v || 'x' "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (k)"
    )
    async with running(tmp_path, MANIFEST) as runtime:
        await ready(runtime)
        for sql, count, left in (
            ("INSERT INTO t VALUES (2, 'b'), (3, 'c')", 2, {1: "a", 2: "b", 3: "c"}),
            ("UPDATE t SET v = coalesce(v, '') || 'd', id = id * 10 WHERE id = 1", 1,
             {10: "ad", 2: "b", 3: "c"}),
            (merge.format("t"), 3, {10: "ad", 3: "cx", 4: None}),
            ("DELETE FROM t WHERE v IS NULL", 1, {10: "ad", 3: "cx"}),
            ("UPDATE kept SET v = 'k' WHERE id = 3", 1, {10: "ad", 3: "k"}),
            ("DELETE FROM t WHERE id = 10", 1, {3: "k"}),
            ("DELETE FROM kept", 1, {}),
            ("DELETE FROM t", 0, {}),
            ("UPDATE vacant SET v = 'x'", 0, {}),
        ):  # fmt: skip
            made = await runtime.sql(sql)
            assert (made.status_code, made.json()) == (200, [{"count": count}]), made.text
            name = next(each for each in ("kept", "vacant", "t") if f" {each} " in f"{sql} ")
            found = (await runtime.sql(f"SELECT id, v FROM {name}")).json()
            assert {each["id"]: each["v"] for each in found} == left, sql
        refused = await runtime.sql(merge.format("kept AS t"))
        assert (refused.status_code, "'kept' is not supported" in refused.text) == (400, True)
        assert str(tmp_path) not in refused.text
    assert DeltaTable(tmp_path / "t").version() == 7
    assert DeltaTable(tmp_path / "empty").version() == 0
