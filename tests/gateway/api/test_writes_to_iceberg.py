"""Writes of Iceberg tables through the API: what is seen then, and what is refused."""

from pathlib import Path

import pyarrow as pa

from tests.kit import iceberg_rest, iceberg_tables
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"]})
PLACE = "from: 'iceberg:sqlite://n/t', params: {sqlite_file: catalog.db}"
MANIFEST = f"""
runtime:
  caching: {{sql_results: {{enabled: true}}}}
datasets:
  - {{{PLACE}, name: t, access: read_write}}
  - {{{PLACE}, name: kept, access: read_write, acceleration: {{enabled: true}}}}
  - {{{PLACE}, name: closed}}
  - {{from: 'iceberg:t', name: folder, access: read_write}}
catalogs:
  - from: 'iceberg:sqlite://'
    name: c
    access: read_write
    params: {{sqlite_file: catalog.db}}
  - from: 'iceberg:sqlite://'
    name: r
    params: {{sqlite_file: catalog.db}}
"""


async def ready(runtime: Running) -> None:
    async def look() -> bool:
        listed = (await runtime.api.get("/v1/datasets?status=true")).json()
        return all(each["status"] == "ready" for each in listed)

    await eventually(look, "all datasets are ready")


async def rows(runtime: Running, table: str) -> list[tuple[int, str | None]]:
    answer = await runtime.sql(f"SELECT id, v FROM {table} ORDER BY id, v")
    assert answer.status_code == 200, answer.text
    return [(each["id"], each["v"]) for each in answer.json()]


async def count(runtime: Running, sql: str) -> int:
    answer = await runtime.sql(sql)
    assert answer.status_code == 200, answer.text
    ((written,),) = (each.values() for each in answer.json())
    return int(written)


async def test_rows_are_written_and_seen_at_once(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path, ROWS)
    async with running(tmp_path, MANIFEST) as runtime:
        await ready(runtime)
        assert await count(runtime, "INSERT INTO t (id) VALUES (4), (5)") == 2
        assert await rows(runtime, "t") == [(1, "a"), (2, "b"), (3, "c"), (4, None), (5, None)]
        assert await count(runtime, "UPDATE t SET v = 'x' || id WHERE id % 2 = 0") == 2
        # Subqueries and the table itself are read as they were before.
        assert await count(runtime, "DELETE FROM t WHERE id IN (SELECT max(id) FROM t)") == 1
        assert await rows(runtime, "t") == [(1, "a"), (2, "x2"), (3, "c"), (4, "x4")]
        merge = """
        MERGE INTO t AS x USING (VALUES (1, 'm1'), (3, 'm3'), (77, 'm7')) AS s(id, v)
        ON x.id = s.id
        WHEN MATCHED AND s.id = 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = s.v || x.v
        WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
        WHEN NOT MATCHED BY SOURCE AND x.id = 2 THEN UPDATE SET v = NULL
        """
        assert await count(runtime, merge) == 4
        assert await rows(runtime, "t") == [(2, None), (3, "m3c"), (4, "x4"), (77, "m7")]
        table.refresh()
        assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [2, 3, 4, 77]
        # Another writer's rows are changed, too, although they were not looked at yet.
        table.append(ROWS.slice(0, 1))
        assert await count(runtime, "UPDATE t SET v = 'new' WHERE id = 1") == 1
        assert (1, "new") in await rows(runtime, "t")
        assert await count(runtime, "DELETE FROM t WHERE FALSE") == 0
        assert await count(runtime, "DELETE FROM t") == 5
        assert await rows(runtime, "t") == []
        assert await count(runtime, "UPDATE t SET v = 'z'") == 0
        assert await count(runtime, "INSERT INTO t SELECT 1, 'again'") == 1
        assert await rows(runtime, "t") == [(1, "again")]


async def test_accelerated_rows_are_those_of_the_source(tmp_path: Path) -> None:
    iceberg_tables.create(tmp_path, ROWS)
    async with running(tmp_path, MANIFEST) as runtime:
        await ready(runtime)
        assert await count(runtime, "INSERT INTO kept VALUES (100, 'k')") == 1
        assert await count(runtime, "UPDATE kept SET v = 'kk' WHERE id = 100") == 1
        assert await count(runtime, "DELETE FROM kept WHERE id < 3") == 2
        assert await rows(runtime, "kept") == [(3, "c"), (100, "kk")]


async def test_tables_of_catalogs_are_written(tmp_path: Path) -> None:
    iceberg_tables.create(tmp_path, ROWS)
    async with running(tmp_path, MANIFEST) as runtime:
        await ready(runtime)
        assert len(await rows(runtime, "c.n.t")) == 3
        assert await count(runtime, "INSERT INTO c.n.t VALUES (200, 'cc')") == 1
        assert await count(runtime, "UPDATE c.n.t SET v = 'x' WHERE id > 2") == 2
        merge = "MERGE INTO c.n.t USING (SELECT 1 AS k) AS s ON t.id = s.k WHEN MATCHED THEN DELETE"
        assert await count(runtime, merge) == 1
        assert await rows(runtime, "c.n.t") == [(2, "b"), (3, "x"), (200, "x")]
        for verb in ("INSERT INTO r.n.t VALUES (1, 'x')", "DELETE FROM r.n.t"):
            answer = await runtime.sql(verb)
            assert (answer.status_code, "read-only" in answer.text) == (403, True), answer.text


async def test_what_fails_changes_nothing(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path, ROWS)
    twice = "MERGE INTO t USING (VALUES (3, 'a'), (3, 'b')) AS s(id, v) ON t.id = s.id"
    merge = "MERGE INTO t USING (SELECT 1 AS k, 'y' AS w) AS s ON t.id = s.k"
    async with running(tmp_path, MANIFEST) as runtime:
        await ready(runtime)
        for sql, status, words in (
            ("UPDATE closed SET id = 1", 403, "read-only"),
            ("INSERT INTO folder VALUES (1, 'x')", 400, "only read"),
            ("DELETE FROM folder", 400, "in files"),
            ("UPDATE t SET id = 1 / 0", 400, "zero"),
            ("UPDATE t SET id = 9223372036854775807 + id", 400, "overflow"),
            ("UPDATE t SET id = 'x'", 400, "'x' is not a valid BIGINT"),
            ("UPDATE t SET nope = 1", 400, "nope"),
            ("DELETE FROM t WHERE nope = 1", 400, "nope"),
            ("INSERT INTO t SELECT 1 / 0, 'x'", 400, "zero"),
            (f"{twice} WHEN MATCHED THEN UPDATE SET v = s.v", 400, "than one row of the source"),
            (f"{merge} WHEN MATCHED THEN UPDATE SET id = 1.5", 400, "'id' is not a int64"),
            (f"{merge} WHEN MATCHED THEN UPDATE SET v = 'a', v = 'b'", 400, "Duplicate column 'v'"),
            (f"{merge} WHEN MATCHED THEN UPDATE SET w = 'a'", 400, "'w'"),
            (f"{merge} WHEN NOT MATCHED THEN INSERT VALUES (1)", 400, "1 value(s)"),
            (f"{merge} WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)", 400, "t.id"),
            (f"{merge} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.w", 400, "s.w"),
            (f"{merge} WHEN MATCHED AND random() < 2 THEN DELETE", 400, "calls random()"),
        ):
            answer = await runtime.sql(sql)
            assert (answer.status_code, words in answer.text) == (status, True), answer.text
            assert str(tmp_path) not in answer.text
        assert len(await rows(runtime, "t")) == 3
    table.refresh()
    assert len(table.metadata.snapshots) == 1


CREATING = """
catalogs:
  - {{from: 'iceberg:{url}', name: c, access: read_write_create}}
  - {{from: 'iceberg:{url}', name: w, access: read_write}}
"""


async def test_tables_are_created_and_dropped(tmp_path: Path) -> None:
    catalog = iceberg_tables.catalog(tmp_path)
    with iceberg_rest.serving(catalog) as server:
        async with running(tmp_path, CREATING.format(url=server.url)) as runtime:
            made = "CREATE TABLE c.n.made AS SELECT 1 AS id, 'a' AS v UNION ALL SELECT 2, NULL"
            assert await count(runtime, made) == 2
            assert await rows(runtime, "c.n.made") == [(1, "a"), (2, None)]
            assert await count(runtime, "INSERT INTO c.n.made VALUES (3, 'c')") == 1
            assert len(await rows(runtime, "w.n.made")) == 3
            again = await runtime.sql(made)
            assert (again.status_code, "is there" in again.text) == (400, True), again.text
            assert await count(runtime, "CREATE TABLE c.n.empty (id BIGINT NOT NULL, v TEXT)") == 0
            assert await count(runtime, "DROP TABLE c.n.empty") == 0
            failed = await runtime.sql("CREATE TABLE c.n.other AS SELECT 1 / 0 AS n")
            assert (failed.status_code, "zero" in failed.text) == (400, True), failed.text
            for sql in ("CREATE TABLE w.n.x AS SELECT 1 AS n", "DROP TABLE w.n.made"):
                refused = await runtime.sql(sql)
                assert refused.status_code == 403, refused.text
            assert await count(runtime, "DROP TABLE c.n.made") == 0
            gone = await runtime.sql("SELECT * FROM c.n.made")
            assert gone.status_code == 400, gone.text
        assert catalog.list_tables("n") == []
