"""The data of a principal that others see, on every route and table with statements or ids."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.runtime import Running, running

MANIFEST = """
    runtime:
      auth: {api-key: {keys: ["ada:rw", "bob:rw", "eve:ro", "root:admin"]}}
      task_history: {captured_output: truncated}
    datasets:
      - {from: 'file:people.csv', name: people}
"""
SECRET = "a-word-of-ada"
Look = Callable[[Running, dict[str, str]], Awaitable[Any]]


def history(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    return runtime.sql("SELECT * FROM runtime.task_history", **key)


def history_otherwise(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    sql = 'SELECT max(input) FROM (SELECT * FROM caraway."runtime".task_history) AS t'
    return runtime.sql(sql, **key)


def history_into_a_plan(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    return runtime.sql("EXPLAIN ANALYZE SELECT input FROM runtime.task_history", **key)


def asynchronous_queries(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    return runtime.api.get("/v1/queries?status=all", headers=key)


def metrics(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    return runtime.metrics.get("/metrics")


def executors(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    return runtime.api.get("/v1/cluster/executors", headers=key)


def active(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    return runtime.api.get("/v1/sql/active", headers=key)


def datasets(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    return runtime.api.get("/v1/datasets?status=true", headers=key)


def listed_tables(runtime: Running, key: dict[str, str]) -> Awaitable[Any]:
    return runtime.sql("SELECT * FROM information_schema.tables", **key)


SURFACES: list[Look] = [
    history, history_otherwise, history_into_a_plan, asynchronous_queries, metrics, executors,
    active, datasets, listed_tables,
]  # fmt: skip


async def worked(runtime: Running) -> str:
    """Let ada run queries; return the id of one of her jobs."""
    sql = f"SELECT '{SECRET}' AS word, count(*) AS n FROM people"
    ada = {"x-api-key": "ada"}
    for statement in (sql, sql, f"SELECT '{SECRET}' FROM nothing"):
        await runtime.sql(statement, **ada)
    submitted = await runtime.api.post("/v1/queries", json={"sql": sql}, headers=ada)
    query_id: str = submitted.json()["query_id"]
    done = await runtime.api.get(f"/v1/queries/{query_id}/status?wait=60", headers=ada)
    assert done.json()["status"] == "SUCCEEDED"
    return query_id


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n")
    return tmp_path


@pytest.mark.parametrize("look", SURFACES)
async def test_others_see_no_statement_and_no_id(folder: Path, look: Look) -> None:
    async with running(folder, MANIFEST) as runtime:
        query_id = await worked(runtime)
        for key in ("bob", "eve"):
            seen = (await look(runtime, {"x-api-key": key})).text
            assert SECRET not in seen
            assert query_id not in seen


async def test_own_statements_are_seen_and_those_of_all_by_an_administrator(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        query_id = await worked(runtime)
        await runtime.sql("SELECT 'of bob'", **{"x-api-key": "bob"})
        sql = "SELECT task, input, captured_output, labels FROM runtime.task_history"
        for key, others in (("ada", False), ("root", True)):
            seen = (await runtime.sql(sql, **{"x-api-key": key})).text
            assert seen.count(SECRET) >= 4
            assert query_id in seen
            assert ("of bob" in seen) == others
        read = (await runtime.sql(sql, **{"x-api-key": "bob"})).json()
        assert [row["input"] for row in read] == ["SELECT 'of bob'"]


async def test_work_on_executors_belongs_to_the_statement_and_not_to_a_trace(
    folder: Path,
) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with running(folder, MANIFEST) as runtime:
        await runtime.sql(f"SELECT '{SECRET}'", **{"x-api-key": "ada", "traceparent": trace})
        sql = "SELECT input FROM runtime.task_history"
        mine = await runtime.sql(sql, **{"x-api-key": "bob", "traceparent": trace})
        assert mine.json() == []


async def test_answers_are_cached_for_one_principal(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        sql = "SELECT count(*) FROM people"
        hits = [
            (await runtime.sql(sql, **{"x-api-key": key})).headers["results-cache-status"]
            for key in ("ada", "ada", "bob", "bob")
        ]
        assert hits == ["MISS", "HIT", "MISS", "HIT"]


async def test_jobs_of_others_do_not_exist(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        query_id = await worked(runtime)
        for key in ("bob", "root"):
            for call in (
                runtime.api.get(f"/v1/queries/{query_id}", headers={"x-api-key": key}),
                runtime.api.get(f"/v1/queries/{query_id}/results", headers={"x-api-key": key}),
                runtime.api.post(f"/v1/queries/{query_id}/cancel", headers={"x-api-key": key}),
            ):
                assert (await call).status_code == 404


async def test_a_job_sees_the_history_of_its_principal(folder: Path) -> None:
    async with running(folder, MANIFEST) as runtime:
        await worked(runtime)
        for key in ("bob", "root"):
            headers = {"x-api-key": key}
            body = {"sql": "SELECT count(*) AS n, max(input) AS i FROM runtime.task_history"}
            submitted = await runtime.api.post("/v1/queries", json=body, headers=headers)
            url = f"/v1/queries/{submitted.json()['query_id']}"
            await runtime.api.get(f"{url}/status?wait=60", headers=headers)
            answer = await runtime.api.get(f"{url}/results", headers=headers)
            assert SECRET not in answer.text


async def test_without_keys_everything_is_visible(folder: Path) -> None:
    manifest = "datasets: [{from: 'file:people.csv', name: people}]\n"
    async with running(folder, manifest) as runtime:
        await runtime.sql(f"SELECT '{SECRET}'")
        assert SECRET in (await history(runtime, {})).text
