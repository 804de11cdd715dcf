"""Datasets over tables of a real PostgreSQL, from the view of clients."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.deadlines import eventually
from tests.kit.postgres import Server, serving
from tests.kit.runtime import Running, running

ACTIVE = (
    "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY%' "
    "AND backend_type = 'client backend'"
)
STUCK = "SELECT id, pg_sleep(600)::text AS s FROM t"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with serving() as server:
        server.execute(
            "CREATE TABLE t (id bigint PRIMARY KEY, g int)",
            "INSERT INTO t SELECT i, i % 10 FROM generate_series(1, 1000) i",
            f"CREATE VIEW stuck AS {STUCK}",
            "ANALYZE",
        )
        yield server


def manifest(server: Server, *datasets: dict[str, Any], timeout: str = "30s") -> str:
    made = [{"params": server.params, **each} for each in datasets]
    return yaml.safe_dump({"datasets": made, "runtime": {"query": {"timeout": timeout}}})


def dataset(name: str, **keys: Any) -> dict[str, Any]:
    return {"from": f"postgres:{name}", "name": name, **keys}


async def ready(runtime: Running, *names: str) -> None:
    async def are() -> bool:
        found = (await runtime.api.get("/v1/datasets?status=true")).json()
        return all(each["status"] == "ready" for each in found if each["name"] in names)

    await eventually(are, "the datasets are ready")


async def test_table_is_read_and_grouped_there(postgres: Server, tmp_path: Path) -> None:
    async with running(tmp_path, manifest(postgres, dataset("t"))) as runtime:
        await ready(runtime, "t")
        sql = (
            "SELECT g, count(*) AS n, sum(id) AS s FROM t WHERE id <= 20 "
            "GROUP BY g ORDER BY g LIMIT 1"
        )
        assert (await runtime.sql(sql)).json() == [{"g": 0, "n": 2, "s": 30}]
        # Nothing of it is stored.
        postgres.execute("INSERT INTO t VALUES (0, 0)")
        try:
            answer = await runtime.sql(sql, **{"cache-control": "no-cache"})
            assert answer.json() == [{"g": 0, "n": 3, "s": 30}]
        finally:
            postgres.execute("DELETE FROM t WHERE id = 0")


async def test_table_is_loaded_by_refreshes(postgres: Server, tmp_path: Path) -> None:
    loaded = dataset("t", acceleration={"enabled": True, "refresh_mode": "full"})
    async with running(tmp_path, manifest(postgres, loaded)) as runtime:
        await ready(runtime, "t")
        postgres.execute("INSERT INTO t VALUES (0, 0)")
        try:
            sql = "SELECT count(*) AS n FROM t"
            assert (await runtime.sql(sql)).json() == [{"n": 1000}]
            asked = await runtime.api.post("/v1/datasets/t/acceleration/refresh")
            assert asked.status_code == 201

            async def is_new() -> bool:
                answer = await runtime.sql(sql, **{"cache-control": "no-cache"})
                return bool(answer.json() == [{"n": 1001}])

            await eventually(is_new, "the refresh has loaded the new row")
        finally:
            postgres.execute("DELETE FROM t WHERE id = 0")


async def test_unresponsive_database_delays_no_other_dataset(
    postgres: Server, tmp_path: Path
) -> None:
    memory = {"from": "memory:m", "name": "m", "params": {"data": '[{"k": 1}, {"k": 2}]'}}
    content = manifest(postgres, dataset("t"), dataset("stuck"), memory, timeout="8s")
    async with running(tmp_path, content) as runtime:
        await ready(runtime, "t", "stuck", "m")
        stuck = [
            asyncio.create_task(runtime.sql(sql))
            for sql in (
                "SELECT s FROM stuck",
                "SELECT s FROM stuck JOIN m ON k = id",
                "SELECT s FROM stuck UNION ALL SELECT s FROM stuck",
                "SELECT count(*) FROM stuck WHERE s > ''",
            )
        ]

        async def are_asked() -> bool:
            return bool(postgres.rows(ACTIVE)[0][0] >= 4)

        await eventually(are_asked, "the database works on them")
        for _ in range(3):
            assert (await runtime.sql("SELECT count(*) AS n FROM m")).json() == [{"n": 2}]
            answer = await runtime.sql("SELECT g FROM t WHERE id = 7")
            assert answer.json() == [{"g": 7}]
        assert not any(each.done() for each in stuck)
        answers = await asyncio.gather(*stuck)
        assert [each.status_code for each in answers] == [504] * 4

        async def are_stopped() -> bool:
            return bool(postgres.rows(ACTIVE)[0][0] == 0)

        await eventually(are_stopped, "the database has stopped them")


async def test_dataset_whose_database_fails_is_in_error(postgres: Server, tmp_path: Path) -> None:
    wrong = {**postgres.params, "pg_user": "nobody", "pg_pass": "hunter2"}
    away = {**postgres.params, "pg_host": str(tmp_path)}
    content = manifest(
        postgres,
        dataset("t"),
        {**dataset("t"), "name": "wrong", "params": wrong},
        {**dataset("t"), "name": "away", "params": away},
        dataset("none"),
    )
    async with running(tmp_path, content) as runtime:
        await ready(runtime, "t")

        async def found() -> dict[str, str | None]:
            answer = await runtime.api.get("/v1/datasets?status=true")
            assert "hunter2" not in answer.text
            codes = {each["name"]: (each["error"] or {}).get("code") for each in answer.json()}
            return codes if all(codes[name] for name in ("wrong", "away", "none")) else {}

        codes = await eventually(found, "the datasets have failed")
        assert codes == {
            "t": None,
            "wrong": "dataset.auth",
            "away": "dataset.connection",
            "none": "dataset.not_found",
        }
        assert (await runtime.sql("SELECT count(*) AS n FROM t")).json() == [{"n": 1000}]
