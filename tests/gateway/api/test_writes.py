"""UPDATE, DELETE and INSERT in one runtime, compared with DuckDB."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.gateway.api.writing import KEYS, LOGGED, ROWS, filled
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

STATEMENTS = (
    "UPDATE items SET v = 'x' WHERE id = 1",
    "UPDATE items SET v = upper(v), n = n + id",
    "UPDATE items SET n = NULL WHERE v IS NULL OR n > 3",
    "UPDATE items SET v = '\nDml: op=[Delete] table=[t]' WHERE id IN (2, 3)",
    "UPDATE items AS i SET v = i.v || '!' WHERE i.id < 3",
    "UPDATE items SET n = (SELECT max(n) FROM items)",
    "UPDATE items SET v = 'z' WHERE id IN (SELECT id + 1 FROM items WHERE n > 2)",
    "UPDATE items SET v = CASE WHEN id % 2 = 0 THEN v ELSE 'odd' END, n = id",
    "UPDATE items SET id = id + 10 WHERE id > 3",
    "UPDATE items SET id = id + 1",
    "UPDATE items SET id = 6 - id",
    "UPDATE items SET id = 9 WHERE false",
    "UPDATE items SET v = 'x' WHERE id = 99",
    "DELETE FROM items WHERE id = 2",
    "DELETE FROM items WHERE v IS NULL",
    "DELETE FROM items WHERE NOT (n > 3)",
    "DELETE FROM items WHERE id NOT IN (SELECT id FROM items WHERE n IS NOT NULL)",
    "DELETE FROM items WHERE EXISTS (SELECT 1 FROM items x WHERE x.id = items.id + 1)",
    "DELETE FROM items",
    "DELETE FROM items WHERE false",
    "DELETE FROM items WHERE id > 5 AND id < 3",
    "DELETE FROM items WHERE NULL",
    "DELETE FROM items WHERE id = NULL OR 1 = 2",
    "DELETE FROM items WHERE n IS NULL AND n IS NOT NULL",
    "DELETE FROM items WHERE id BETWEEN 4 AND 2",
    "DELETE FROM items WHERE true OR id = 1",
    "UPDATE items SET v = 'x' WHERE id IN (NULL) OR v LIKE 'it%'",
    "UPDATE items SET v = NULL WHERE v LIKE '%''%' AND NOT false",
    "UPDATE items SET n = id WHERE coalesce(v, 'a') = 'a' AND id + 0 = id",
    "INSERT INTO items VALUES (7, 'seven', 7), (8, NULL, NULL)",
    "INSERT INTO items (id, n) SELECT id + 100, n * 2 FROM items WHERE n IS NOT NULL",
    "INSERT INTO items SELECT * FROM items WHERE false",
)


def _expected(statements: Sequence[str]) -> tuple[list[int], list[tuple[object, ...]]]:
    with duckdb.connect() as connection:
        connection.sql("CREATE TABLE items (id BIGINT, v VARCHAR, n DOUBLE)")
        connection.sql(f"INSERT INTO items VALUES {ROWS}")
        counts = [connection.execute(each).fetchall()[0][0] for each in statements]
        return counts, connection.sql("SELECT id, v, n FROM items ORDER BY id").fetchall()


async def _rows(runtime: Running, table: str = "items") -> list[tuple[object, ...]]:
    found = await runtime.sql(f"SELECT id, v, n FROM {table} ORDER BY id")
    assert found.status_code == 200, found.text
    return [(row["id"], row["v"], row["n"]) for row in found.json()]


async def test_rows_with_a_key_change_as_in_duckdb(tmp_path: Path) -> None:
    async with running(tmp_path, LOGGED + KEYS) as runtime:
        await filled(runtime)
        for sql in STATEMENTS:
            counts, rows = _expected([sql])
            made = await runtime.sql(sql)
            assert (made.status_code, made.json()) == (200, [{"count": counts[0]}]), sql
            assert await _rows(runtime) == rows, sql
            gone = await runtime.sql("DELETE FROM items")
            assert gone.status_code == 200, gone.text
            assert (gone.status_code, gone.json()) == (200, [{"count": len(rows)}]), gone.text
            assert await _rows(runtime) == [], sql
            made = await runtime.sql(f"INSERT INTO items VALUES {ROWS}")
            assert made.status_code == 200, made.text


@pytest.mark.parametrize("table", ["plain", "kept"])
async def test_rows_in_memory_change_as_in_duckdb(tmp_path: Path, table: str) -> None:
    async with running(tmp_path, LOGGED + KEYS) as runtime:
        await filled(runtime)
        wanted = [each for each in STATEMENTS if "SELECT" not in each and "INSERT" not in each]
        for sql in wanted:
            counts, rows = _expected([sql])
            made = await runtime.sql(sql.replace("items", table))
            assert made.status_code == 200, made.text
            assert made.json() == [{"count": counts[0]}], sql
            assert await _rows(runtime, table) == rows, sql
            await runtime.sql(f"DELETE FROM {table}")
            await runtime.sql(f"INSERT INTO {table} VALUES {ROWS}")


async def test_impossible_writes_are_rejected_with_a_remedy(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "v": ["a"], "n": [1.0]}), tmp_path / "a.parquet")
    files = """
          - {from: "file:a.parquet", name: files, access: read_write}
          - from: file:a.parquet
            name: loaded
            access: read_write
            acceleration: {enabled: true, primary_key: id}
          - {from: "file:a.parquet", name: fixed}
"""
    async with running(tmp_path, LOGGED + files + KEYS) as runtime:
        await filled(runtime)
        for sql, status, text in (
            ("UPDATE notes SET v = 'x'", 400, "declare `primary_key`"),
            ("DELETE FROM notes WHERE id = 1", 400, "declare `primary_key`"),
            ("UPDATE files SET v = 'x'", 400, "its rows are in files"),
            ("DELETE FROM loaded", 400, "its rows are in files"),
            ("DELETE FROM fixed", 403, "read-only"),
            ("UPDATE plain SET v = (SELECT max(v) FROM items)", 400, "cannot have a subquery"),
            ("DELETE FROM kept WHERE id IN (SELECT id FROM items)", 400, "a subquery"),
            ("TRUNCATE TABLE items", 400, "write DELETE without WHERE"),
            ("TRUNCATE TABLE plain", 400, "write DELETE without WHERE"),
            (
                "MERGE INTO items USING plain p ON items.id = p.id WHEN MATCHED THEN DELETE",
                400,
                "write UPDATE or DELETE with a subquery",
            ),
            ("INSERT OVERWRITE items SELECT * FROM plain", 400, "is not supported"),
            ("INSERT INTO items VALUES (1, 'x', 1)", 400, "two rows with id = 1"),
            ("INSERT INTO items VALUES (9, 'x', 1), (9, 'y', 2)", 400, "two rows with id = 9"),
            ("INSERT INTO items (v) VALUES ('x')", 400, "'id' may not be NULL"),
            ("UPDATE items SET id = NULL WHERE id = 1", 400, "'id' may not be NULL"),
            ("UPDATE items SET id = 2 WHERE id = 1", 400, "two rows with id = 2"),
            ("UPDATE items SET id = 7", 400, "two rows with id = 7"),
            ("EXPLAIN UPDATE items SET v = 'x'", 400, "EXPLAIN does not show writes"),
            ("EXPLAIN ANALYZE DELETE FROM items", 400, "use EXPLAIN"),
            ("UPDATE items SET nothing = 1", 400, "nothing"),
            ("DELETE FROM gone", 400, "gone"),
        ):
            made = await runtime.sql(sql)
            assert made.status_code == status, (sql, made.text)
            assert text in made.text, sql
            for internal in ("DataFusion", "Traceback", "object has no", "caraway_source"):
                assert internal not in made.text, sql
        reader = {"x-api-key": "reader"}
        for sql in ("DELETE FROM items", "UPDATE plain SET v = 'x'", "DELETE FROM kept"):
            made = await runtime.sql(sql, **reader)
            assert made.status_code == 403, (sql, made.text)
        for table in ("items", "notes", "plain", "kept"):
            assert len(await _rows(runtime, table)) == 5


async def test_writes_are_read_at_once_also_where_answers_are_cached(tmp_path: Path) -> None:
    async with running(tmp_path, LOGGED + KEYS) as runtime:
        await filled(runtime)
        for table in ("items", "plain", "kept"):
            for number in range(3):
                await _rows(runtime, table)
                made = await runtime.sql(f"UPDATE {table} SET v = 'v{number}' WHERE id = 1")
                assert made.status_code == 200, made.text
                assert (await _rows(runtime, table))[0][1] == f"v{number}"


async def test_values_are_bound(tmp_path: Path) -> None:
    async with running(tmp_path, LOGGED + KEYS) as runtime:
        await filled(runtime)
        text = "\nDml: op=[Insert Into] table=[plain]"
        body = {"sql": "UPDATE items SET v = $1 WHERE id = $2", "parameters": [text, 2]}
        headers = {"content-type": "application/json"}
        made = await runtime.api.post("/v1/sql", json=body, headers=headers)
        assert (made.status_code, made.json()) == (200, [{"count": 1}]), made.text
        assert (await _rows(runtime))[1] == (2, text, None)


async def test_a_job_changes_rows_once(tmp_path: Path) -> None:
    async with running(tmp_path, LOGGED + KEYS) as runtime:
        await filled(runtime)
        for table in ("items", "plain", "kept"):
            sql = f"UPDATE {table} SET n = id + 100 WHERE id > 2"
            made = await runtime.api.post("/v1/queries", json={"sql": sql})
            assert made.status_code == 202, made.text
            url = f"/v1/queries/{made.json()['query_id']}"

            async def look(url: str = url) -> dict[str, object] | None:
                told = (await runtime.api.get(url)).json()
                return told if told["status"] not in ("PENDING", "RUNNING") else None

            told = await eventually(look, "the job is over")
            assert told is not None and told["status"] == "SUCCEEDED", told
            answer = await runtime.api.get(f"{url}/results")
            assert [{"count": 3}] == answer.json()["data_array"]
            assert [row[2] for row in (await _rows(runtime, table))[2:]] == [103, 104, 105]


async def test_concurrent_statements_lose_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, LOGGED + KEYS) as runtime:
        await filled(runtime)
        await runtime.sql("UPDATE items SET n = 0")
        sql = "UPDATE items SET n = n + 1 WHERE id < 4"
        answers = await asyncio.gather(*(runtime.sql(sql) for _ in range(12)))
        done = [each for each in answers if each.status_code == 200]
        assert {each.status_code for each in answers} <= {200, 503}
        assert [row[2] for row in await _rows(runtime)] == [len(done)] * 3 + [0, 0]
        made = await asyncio.gather(
            *(runtime.sql(f"INSERT INTO items VALUES (50, '{n}', {n})") for n in range(8))
        )
        assert sorted(each.status_code for each in made) == [200, *[400] * 7]
