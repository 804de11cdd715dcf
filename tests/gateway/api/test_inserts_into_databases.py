"""INSERT into tables of databases over HTTP: who may, what is seen afterwards, what is refused."""

from pathlib import Path

import pytest

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
            ("UPDATE t SET v = 'x'", 400, "its rows are in a database"),
            ("DELETE FROM t", 400, "its rows are in a database"),
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
