"""Writes to tables of databases at all doors: who may, what is seen then, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.flight.serving import KEYS as FLIGHT_KEYS
from tests.gateway.flight.serving import serving
from tests.gateway.flight.sql.driving import drive, fetched
from tests.kit import duckdb_files, sqlite_files
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

MANIFEST = """
runtime:
  caching: {{sql_results: {{enabled: true}}}}
  auth: {{api-key: {{keys: ['writer:rw', 'reader:ro']}}}}
datasets:
  - {{from: '{kind}:t', name: t, access: read_write, params: {params}}}
  - {{from: '{kind}:t', name: closed, params: {params}}}
  - {{from: '{kind}:t', name: kept, access: read_write, params: {params},
     acceleration: {{enabled: true}}}}
"""
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR NOT NULL DEFAULT 'new')"
KINDS = {
    "duckdb": ("duckdb_open", duckdb_files.run),
    "sqlite": ("sqlite_file", sqlite_files.run),
}


async def ready(runtime: Running) -> None:
    async def look() -> bool:
        listed = (await runtime.api.get("/v1/datasets?status=true")).json()
        return all(each["status"] == "ready" for each in listed)

    runtime.api.headers.update({"x-api-key": "writer"})
    await eventually(look, "all datasets are ready")


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_rows_are_inserted_into_a_database(tmp_path: Path, kind: str) -> None:
    param, run = KINDS[kind]
    run(tmp_path / "secret.place", TABLE, "INSERT INTO t (id) VALUES (1)")
    manifest = MANIFEST.format(kind=kind, params=f"{{{param}: secret.place}}")
    async with running(tmp_path, manifest) as runtime:
        await ready(runtime)
        count = "SELECT count(*) AS n FROM t"
        for _ in range(2):
            assert (await runtime.sql(count)).json() == [{"n": 1}]
        made = await runtime.sql("INSERT INTO t (id) SELECT value FROM generate_series(2, 9)")
        assert (made.status_code, made.json()) == (200, [{"count": 8}]), made.text
        assert (await runtime.sql(count)).json() == [{"n": 9}]
        for sql, status, words in (
            ("INSERT INTO t (id) VALUES (10), (9)", 400, "no row was inserted"),
            ("INSERT INTO closed (id) VALUES (10)", 403, "read-only"),
            ("UPDATE t SET v = upper(v)", 400, "its database may take the new value"),
            ("DELETE FROM t WHERE upper(v) = 'X'", 400, "its database may take its condition"),
            ("UPDATE closed SET v = 'x'", 403, "read-only"),
            ("DELETE FROM closed", 403, "read-only"),
            ("UPDATE t SET id = 1", 400, "no row was changed"),
        ):
            answer = await runtime.sql(sql)
            assert (answer.status_code, words in answer.text) == (status, True), answer.text
            assert "secret.place" not in answer.text and str(tmp_path) not in answer.text
        made = await runtime.sql("INSERT INTO kept (id) VALUES (10)")
        assert (made.status_code, made.json()) == (200, [{"count": 1}]), made.text
        for table in ("t", "kept"):
            found = await runtime.sql(f"SELECT id, v FROM {table} WHERE id = 10")
            assert found.json() == [{"id": 10, "v": "new"}], table
        runtime.api.headers.update({"x-api-key": "reader"})
        assert (await runtime.sql("INSERT INTO t (id) VALUES (10)")).status_code == 403
        assert (await runtime.sql(count)).json() == [{"n": 10}]


async def job(runtime: Running, sql: str) -> dict[str, Any]:
    """Return a job when it has ended."""
    made = await runtime.api.post("/v1/queries", json={"sql": sql})
    if made.status_code != 202:
        return dict(made.json())
    url = f"/v1/queries/{made.json()['query_id']}?wait=60"
    while (done := (await runtime.api.get(url)).json())["status"] in ("PENDING", "RUNNING"):
        pass
    return dict(done)


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_rows_of_a_database_are_changed(tmp_path: Path, kind: str) -> None:
    param, run = KINDS[kind]
    run(tmp_path / "secret.place", TABLE,
        "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")  # fmt: skip
    manifest = MANIFEST.format(kind=kind, params=f"{{{param}: secret.place}}")
    async with running(tmp_path, manifest) as runtime:
        await ready(runtime)
        listed = "SELECT v FROM t ORDER BY id"
        for _ in range(2):
            assert [each["v"] for each in (await runtime.sql(listed)).json()] == [*"abcd"]
        made = await runtime.sql("UPDATE t SET v = 'x' WHERE id IN (1, 2)")
        assert (made.status_code, made.json()) == (200, [{"count": 2}]), made.text
        assert [each["v"] for each in (await runtime.sql(listed)).json()] == [*"xxcd"]
        done = await job(runtime, "DELETE FROM t WHERE v = 'd'")
        assert done["status"] == "SUCCEEDED", done
        assert [each["v"] for each in (await runtime.sql(listed)).json()] == [*"xxc"]
        merge = (
            "MERGE INTO t USING (SELECT * FROM (VALUES (3, 'c'), (5, 'e')) AS s (k, w)) AS s "
            "ON t.id = s.k WHEN MATCHED THEN UPDATE SET v = upper(w) "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, w)"
        )
        made = await runtime.sql(merge)
        assert (made.status_code, made.json()) == (200, [{"count": 2}]), made.text
        assert [each["v"] for each in (await runtime.sql(listed)).json()] == [*"xxCe"]
        made = await runtime.sql(merge.replace("INTO t ", "INTO kept AS t "))
        assert (made.status_code, "kept' is not supported" in made.text) == (400, True), made.text
        assert (await job(runtime, f"{merge} /**/"))["status"] == "SUCCEEDED"
        assert (await runtime.sql("DELETE FROM t WHERE id = 5")).json() == [{"count": 1}]
        assert (await runtime.sql("UPDATE t SET v = 'c' WHERE id = 3")).json() == [{"count": 1}]
        made = await runtime.sql("UPDATE kept SET v = 'y' WHERE id = 3")
        assert (made.status_code, made.json()) == (200, [{"count": 1}]), made.text
        for table in ("t", "kept"):
            found = await runtime.sql(f"SELECT v FROM {table} WHERE id = 3")
            assert found.json() == [{"v": "y"}], table
        made = await runtime.sql("DELETE FROM kept WHERE v = 'y'")
        assert (made.status_code, made.json()) == (200, [{"count": 1}]), made.text
        for table in ("t", "kept"):
            assert len((await runtime.sql(f"SELECT v FROM {table}")).json()) == 2, table
        runtime.api.headers.update({"x-api-key": "reader"})
        for sql in ("UPDATE t SET v = 'z'", "DELETE FROM t", "DELETE FROM kept", merge):
            assert (await runtime.sql(sql)).status_code == 403
            refused = await job(runtime, sql)
            assert refused.get("status") != "SUCCEEDED", refused
        assert [each["v"] for each in (await runtime.sql(listed)).json()] == [*"xx"]


async def test_flight_sql_changes_rows_for_those_who_may(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    sqlite_files.run(file, TABLE, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spec = sqlite_files.resolved(file, "t")
    update, delete = "UPDATE t SET v = 'x' WHERE id < 3", "DELETE FROM t WHERE v = 'x'"
    async with serving({"t": spec, "u": spec}, writable=("t",), keys=FLIGHT_KEYS) as server:
        for sql in (update, delete):
            with pytest.raises(Exception, match=r"(?i)read-only|may not|write"):
                await drive(server, fetched(sql), "reader")
        with pytest.raises(Exception, match="read-only"):
            await drive(server, fetched("DELETE FROM u"), "writer")
        counts = [await drive(server, fetched(sql), "writer") for sql in (update, delete)]
        assert [each.to_pylist() for each in counts] == [[{"count": 2}], [{"count": 2}]]
        left = await drive(server, fetched("SELECT v FROM t"), "reader")
        assert left.to_pylist() == [{"v": "c"}]


CATALOGS = """
runtime:
  caching: {sql_results: {enabled: true}}
  auth: {api-key: {keys: ['writer:rw', 'reader:ro']}}
catalogs:
  - {from: sqlite, name: sq, access: read_write, params: {sqlite_file: s.db}}
  - {from: duckdb, name: du, access: read_write, include: [main.t],
     params: {duckdb_open: d.duckdb}}
  - {from: sqlite, name: closed, params: {sqlite_file: s.db}}
"""


async def test_tables_of_catalogs_are_written(tmp_path: Path) -> None:
    odd = "Select ${x}; --"
    for name, (_, run) in {"d.duckdb": KINDS["duckdb"], "s.db": KINDS["sqlite"]}.items():
        run(tmp_path / name, TABLE, f'CREATE TABLE "{odd}" ("Group" INTEGER)')
    async with running(tmp_path, CATALOGS) as runtime:
        await ready(runtime)
        for table in ("sq.main.t", "du.main.t"):
            # A statement that writes is the first one that names the table.
            for sql, count in (
                (f"INSERT INTO {table} (id) VALUES (1), (2), (3)", 3),
                (f"UPDATE {table} SET v = 'x' WHERE id < 3", 2),
                (f"DELETE FROM {table} WHERE id = 2", 1),
            ):
                made = await runtime.sql(sql)
                assert (made.status_code, made.json()) == (200, [{"count": count}]), made.text
                listed = await runtime.sql(f"SELECT count(*) AS n FROM {table}")
                assert listed.json() == [{"n": 2 if count == 1 else 3}]
            done = await job(runtime, f"INSERT INTO {table} SELECT id + 10, v FROM {table}")
            assert done["status"] == "SUCCEEDED", done
            found = await runtime.sql(f"SELECT * FROM {table} ORDER BY id")
            assert found.json() == [
                {"id": 1, "v": "x"}, {"id": 3, "v": "new"},
                {"id": 11, "v": "x"}, {"id": 13, "v": "new"},
            ]  # fmt: skip
        made = await runtime.sql(f'INSERT INTO sq.main."{odd}" VALUES (7)')
        assert (made.status_code, made.json()) == (200, [{"count": 1}]), made.text
        for sql, words in (
            ("INSERT INTO closed.main.t (id) VALUES (9)", "catalog 'closed' is read-only"),
            ("DELETE FROM closed.main.t", "catalog 'closed' is read-only"),
        ):
            answer = await runtime.sql(sql)
            assert (answer.status_code, words in answer.text) == (403, True), answer.text
        assert (await runtime.sql(f'DELETE FROM du.main."{odd}"')).status_code == 400
        runtime.api.headers.update({"x-api-key": "reader"})
        for sql in ("DELETE FROM sq.main.t", "INSERT INTO du.main.t (id) VALUES (99)"):
            assert (await runtime.sql(sql)).status_code == 403
            assert (await job(runtime, sql)).get("status") != "SUCCEEDED"
        assert len((await runtime.sql("SELECT * FROM sq.main.t")).json()) == 4


CREATING = """
runtime:
  caching: {sql_results: {enabled: true}}
  auth: {api-key: {keys: ['writer:rw', 'reader:ro']}}
catalogs:
  - {from: sqlite, name: sq, access: read_write_create, params: {sqlite_file: s.db}}
  - {from: duckdb, name: du, access: read_write_create, include: [main.t, main.new*],
     params: {duckdb_open: d.duckdb}}
  - {from: sqlite, name: written, access: read_write, params: {sqlite_file: s.db}}
"""


async def test_tables_of_catalogs_are_created_and_dropped(tmp_path: Path) -> None:
    for name, (_, run) in {"d.duckdb": KINDS["duckdb"], "s.db": KINDS["sqlite"]}.items():
        run(tmp_path / name, TABLE, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    async with running(tmp_path, CREATING) as runtime:
        await ready(runtime)

        async def count(sql: str, **options: Any) -> int:
            made = await runtime.sql(sql, **options)
            assert made.status_code == 200, made.text
            (row,) = made.json()
            return int(row["count"])

        for catalog in ("sq.main", "du.main"):
            source = "du.main.t" if catalog == "sq.main" else "sq.main.t"
            assert await count(f"CREATE TABLE {catalog}.new1 AS SELECT * FROM {source}") == 2
            listed = f"SELECT * FROM {catalog}.new1 ORDER BY id"
            for _ in range(2):
                found = await runtime.sql(listed)
                assert found.json() == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], found.text
            assert await count(f"CREATE TABLE IF NOT EXISTS {catalog}.new1 AS SELECT 1 AS a") == 0
            assert await count(f"CREATE TABLE {catalog}.new2 (a INT PRIMARY KEY, b TEXT)") == 0
            assert await count(f"INSERT INTO {catalog}.new2 VALUES (1, 'x')") == 1
            done = await job(runtime, f"CREATE TABLE {catalog}.new3 AS SELECT 7 AS a")
            assert done["status"] == "SUCCEEDED", done
            shown = await runtime.sql(
                "SELECT table_name AS n FROM runtime.catalog_tables "
                f"WHERE table_catalog = '{catalog[:2]}' ORDER BY 1"
            )
            assert [each["n"] for each in shown.json()] == ["new1", "new2", "new3", "t"]
            # The same name with other columns is another table.
            assert await count(f"DROP TABLE {catalog}.new1") == 0
            assert (await runtime.sql(listed)).status_code == 400
            assert await count(f"DROP TABLE IF EXISTS {catalog}.new1") == 0
            assert await count(f"CREATE TABLE {catalog}.new1 AS SELECT 9 AS id") == 1
            assert (await runtime.sql(listed)).json() == [{"id": 9}]
        for sql, status, words in (
            ("CREATE TABLE sq.main.new1 AS SELECT 1 AS a", 400, "is there; nothing is created"),
            ("CREATE TABLE sq.main.x AS SELECT 1 / 0 AS a", 400, "ivi"),
            ("CREATE TABLE sq.other.x AS SELECT 1 AS a", 400, "'main' alone"),
            ('CREATE TABLE sq.main."a.b" AS SELECT 1 AS a', 400, "no dots, slashes or quotes"),
            ("CREATE TABLE du.main.x AS SELECT 1 AS a", 403, "'include' of catalog 'du' leaves"),
            ("CREATE TABLE du.away.newx AS SELECT 1 AS a", 403, "leaves out away.newx"),
            ("CREATE TABLE written.main.x AS SELECT 1 AS a", 403, "access: read_write_create"),
            ("DROP TABLE written.main.t", 403, "access: read_write_create"),
            ("DROP TABLE sq.main.away", 400, "not found"),
            ("CREATE TABLE nowhere.main.x AS SELECT 1 AS a", 400, "created in a source"),
            ("CREATE TABLE sq.main.x AS INSERT INTO sq.main.t VALUES (9, 'x')", 403, "refused"),
        ):
            answer = await runtime.sql(sql)
            assert (answer.status_code, words in answer.text) == (status, True), (sql, answer.text)
            assert str(tmp_path) not in answer.text
        runtime.api.headers.update({"x-api-key": "reader"})
        for sql in ("CREATE TABLE sq.main.x AS SELECT 1 AS a", "DROP TABLE sq.main.t"):
            answer = await runtime.sql(sql)
            assert (answer.status_code, "may only read" in answer.text) == (403, True), answer.text
            assert (await job(runtime, sql)).get("status") != "SUCCEEDED"
        left = await runtime.sql("SELECT count(*) AS n FROM sq.main.t")
        assert left.json() == [{"n": 2}]
