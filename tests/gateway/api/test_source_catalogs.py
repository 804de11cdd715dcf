"""Source catalogs over a real PostgreSQL, from the view of clients."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.postgres import Server, serving
from tests.kit.runtime import Running, running

WAIT_S = 60.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with serving() as server:
        server.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, who int)",
            "INSERT INTO orders SELECT i, i % 10 FROM generate_series(1, 1000) i",
            "CREATE SCHEMA crm",
            "CREATE TABLE crm.people (id int, name text)",
            "INSERT INTO crm.people SELECT i, 'p' || i FROM generate_series(0, 9) i",
            'CREATE TABLE crm."Table" ("Group" int)',
            "ANALYZE",
        )
        yield server


def manifest(server: Server, **more: Any) -> str:
    catalog = {"from": "postgres", "name": "pg", "params": server.params}
    return yaml.safe_dump({"catalogs": [catalog], **more})


async def answered(runtime: Running, sql: str) -> Any:
    answer = await runtime.sql(sql)
    assert answer.status_code == 200, answer.text
    return answer.json()


JOINED = (
    "SELECT p.name, count(*) AS n, sum(o.id) AS s FROM pg.public.orders o "
    "JOIN pg.crm.people p ON p.id = o.who WHERE o.id <= 20 GROUP BY p.name ORDER BY 1 LIMIT 2"
)
ANSWER = [{"name": "p0", "n": 2, "s": 30}, {"name": "p1", "n": 2, "s": 12}]


async def test_tables_are_joined_and_explained(postgres: Server, tmp_path: Path) -> None:
    async with running(tmp_path, manifest(postgres)) as runtime:
        assert await answered(runtime, JOINED) == ANSWER
        # Only the first statement has them described.
        installed = runtime.services.catalog.version
        assert await answered(runtime, JOINED) == ANSWER
        assert runtime.services.catalog.version == installed
        plan = str(await answered(runtime, "EXPLAIN SELECT max(id) FROM pg.public.orders"))
        assert '"public"."orders"' in plan and "answered_by_database" in plan
        described = await answered(runtime, 'DESCRIBE pg.crm."Table"')
        assert [each["column_name"] for each in described] == ["Group"]
        assert (await runtime.sql("INSERT INTO pg.public.orders VALUES (1, 1)")).status_code == 403


async def test_a_cluster_reads_them(postgres: Server, tmp_path: Path) -> None:
    views = [{"name": "of_people", "sql": JOINED.removesuffix(" LIMIT 2")}]
    async with asyncio.timeout(WAIT_S), clustered(tmp_path, manifest(postgres, views=views)) as up:
        assert await up.membership.wait_ready(2, WAIT_S)
        assert await answered(up.runtime, JOINED) == ANSWER
        assert len(await answered(up.runtime, "SELECT * FROM of_people")) == 10
        sql = "SELECT count(*) AS n FROM pg.public.orders a JOIN pg.public.orders b ON a.id = b.who"
        assert await answered(up.runtime, sql) == [{"n": 900}]
        job = (await up.runtime.api.post("/v1/queries", json={"sql": JOINED})).json()

        async def ended() -> bool:
            got = await up.runtime.api.get(f"/v1/queries/{job['query_id']}")
            return bool(got.json()["status"] == "SUCCEEDED")

        await eventually(ended, "the job read the tables")


async def test_catalogs_and_their_tables_are_listed(postgres: Server, tmp_path: Path) -> None:
    async with running(tmp_path, manifest(postgres)) as runtime:
        own = {"from": "caraway", "name": "caraway"}
        listed = {"from": "postgres", "name": "pg"}
        asked = runtime.api.get
        assert (await asked("/v1/catalogs")).json() == [own, listed]
        assert (await asked("/v1/catalogs?from=postgres")).json() == [listed]
        assert (await asked("/v1/catalogs?from=duckdb")).json() == []
        found = (await asked("/v1/catalogs?from=postgres&status=true")).json()
        told = {"status": "ready", "error": None, "error_message": None, "tables": 3}
        assert found == [{**listed, **told}]
        assert (await asked("/v1/catalogs?format=csv")).text.splitlines()[1:] == [
            "caraway,caraway",
            "postgres,pg",
        ]
        page = (await runtime.metrics.get("/metrics")).text
        assert 'catalog_load_state{catalog="pg"} 1.0' in page.splitlines()
        await answered(runtime, JOINED)
        sql = "SELECT table_schema || '.' || table_name AS t FROM runtime.catalog_tables ORDER BY 1"
        names = [each["t"] for each in await answered(runtime, sql)]
        assert names == ["crm.Table", "crm.people", "public.orders"]
        # Clients that ask for a schema mean that of the runtime.
        sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        assert await answered(runtime, sql) == []


async def test_tools_name_tables_of_catalogs(postgres: Server, tmp_path: Path) -> None:
    async with running(tmp_path, manifest(postgres)) as runtime:
        tables = {"tables": ["pg.crm.people"], "output": "minimal"}
        answer = await runtime.api.post("/v1/tools/table_schema", json=tables)
        assert answer.status_code == 200, answer.text
        assert [each["name"] for each in answer.json()[0]["columns"]] == ["id", "name"]
        sampled = {"tbl": 'pg.crm."Table"', "limit": 1}
        answer = await runtime.api.post("/v1/tools/random_sample", json=sampled)
        assert answer.status_code == 200, answer.text
        search = {"text": "x", "datasets": ["pg.crm.people"]}
        answer = await runtime.api.post("/v1/search", json=search)
        assert answer.status_code == 400 and "search a view over it" in answer.text


async def test_a_server_that_ends_and_comes_back(tmp_path: Path) -> None:
    with serving() as server:
        server.execute("CREATE TABLE t (a int)", "CREATE TABLE later (a int)")
        server.stop()
        async with running(tmp_path, manifest(server)) as runtime:
            answer = await runtime.sql("SELECT a FROM pg.public.t")
            assert answer.status_code == 503 and "catalog 'pg': " in answer.text
            assert int(answer.headers["retry-after"]) > 0
            (listed,) = (await runtime.api.get("/v1/catalogs?from=postgres&status=true")).json()
            assert (listed["status"], listed["error"]["code"]) == ("error", "dataset.connection")
            assert (await runtime.api.get("/v1/ready")).status_code == 200
            assert await answered(runtime, "SELECT 1 AS a") == [{"a": 1}]
            server.start()

            async def is_back() -> bool:
                return bool((await runtime.sql("SELECT a FROM pg.public.t")).status_code == 200)

            await eventually(is_back, "the catalog is listed")
            server.kill()
            answer = await runtime.sql("SELECT a FROM pg.public.t")
            assert answer.status_code >= 500 and "Traceback" not in answer.text
            answer = await runtime.sql("SELECT a FROM pg.public.later")
            assert answer.status_code == 503 and "table 'pg.public.later'" in answer.text
            server.start()
            await eventually(is_back, "the table is read again")


async def test_a_changed_manifest_changes_the_catalogs(postgres: Server, tmp_path: Path) -> None:
    async with running(tmp_path, manifest(postgres)) as runtime:
        await answered(runtime, JOINED)
        services = runtime.services
        before = services.manifest.current
        (catalog,) = before.catalogs
        secrets = services.catalog._asking.resolver
        from dataclasses import replace

        narrow = replace(before, catalogs=(replace(catalog, include=("crm.*",)),))
        await services.catalog.apply(narrow, secrets)
        answer = await runtime.sql("SELECT id FROM pg.public.orders")
        assert answer.status_code == 400 and "no schema 'public'" in answer.text
        await answered(runtime, "SELECT id FROM pg.crm.people")
        await services.catalog.apply(replace(before, catalogs=()), secrets)
        answer = await runtime.sql("SELECT id FROM pg.crm.people")
        assert answer.status_code == 400 and "not found" in answer.text
