"""Search functions in statements over HTTP and in jobs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_scheduler.composition.backend import Backend
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.searching import searching

MANIFEST = """
    runtime:
      caching:
        sql_results: {item_ttl: 1h}
    datasets:
      - {from: 'file:docs.parquet', name: docs}
      - {from: 'memory:kept', name: kept, access: read_write, columns: [{name: id, type: bigint}]}
      - from: file:docs.parquet
        name: fast
        acceleration: {enabled: true, engine: file, primary_key: id}
    views:
      - {name: hits, sql: "SELECT id, score FROM text_search(docs, 'red', 5) WHERE id > 1"}
      - {name: more, sql: "SELECT h.id FROM hits h WHERE id > 2"}
      - name: stored
        sql: SELECT id, score FROM text_search(docs, 'red', 3)
        acceleration: {enabled: true, engine: file}
"""
BODIES = ["red", "blue", "red red", "green", "red red red", "red blue"]


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Running]:
    rows = pa.table({"id": pa.array(range(6), pa.int64()), "body": BODIES})
    pq.write_table(rows, folder / "docs.parquet")

    def wired(backend: Backend) -> Backend:
        return replace(backend, dispatch=searching(backend.dispatch)[0])

    async with running(folder, MANIFEST, wired=wired) as runtime:
        yield runtime


async def _rows(runtime: Running, sql: str, **parameters: Any) -> Any:
    response = await runtime.api.post("/v1/sql", json={"sql": sql, "parameters": parameters})
    assert response.status_code == 200, response.text
    return response.json()


async def test_statements_search(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        sql = "SELECT id FROM text_search(docs, $w) WHERE id < $top ORDER BY score DESC LIMIT 2"
        assert await _rows(runtime, sql, w="red", top=4) == [{"id": 2}, {"id": 0}]
        assert await _rows(runtime, sql, w="red", top=9) == [{"id": 4}, {"id": 2}]
        assert await _rows(runtime, sql, w=None, top=9) == []


async def test_views_search(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        assert await _rows(runtime, "SELECT id FROM hits ORDER BY score DESC, id LIMIT 2") == [
            {"id": 4},
            {"id": 2},
        ]
        assert await _rows(runtime, "SELECT count(*) AS n FROM more") == [{"n": 3}]
        listed = "SELECT column_name AS c FROM information_schema.columns WHERE table_name = 'hits'"
        assert await _rows(runtime, listed) == [{"c": "id"}, {"c": "score"}]

        async def stored() -> bool:
            response = await runtime.sql("SELECT id FROM stored ORDER BY score DESC, id")
            return bool(response.json() == [{"id": 4}, {"id": 2}, {"id": 0}])

        await eventually(stored, "the accelerated view has its rows")


async def test_results_are_cached_and_inserted(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        sql = "SELECT id FROM text_search(docs, 'red', 2)"
        found = [(await runtime.sql(sql)).headers["results-cache-status"] for _ in range(2)]
        assert found == ["MISS", "HIT"]
        await _rows(runtime, f"INSERT INTO kept {sql}")
        assert await _rows(runtime, "SELECT id FROM kept ORDER BY id") == [{"id": 2}, {"id": 4}]


async def test_a_job_searches(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        sql = "SELECT id FROM text_search(docs, 'red', 2) ORDER BY id"
        made = await runtime.api.post("/v1/queries", json={"sql": sql})
        job = made.json()["query_id"]

        async def ended() -> bool:
            response = await runtime.api.get(f"/v1/queries/{job}")
            status = response.json()["status"]
            assert status not in ("FAILED", "CANCELED"), response.text
            return bool(status == "SUCCEEDED")

        await eventually(ended, "the job has succeeded")
        results = await runtime.api.get(f"/v1/queries/{job}/results")
        assert "2" in results.text and "4" in results.text


WRONG = {
    "SELECT * FROM vector_search(nope, 'q')": "nope",
    "SELECT * FROM vector_search(docs)": "line 1, column 15: vector_search: `query` is missing",
    "SELECT vector_search(docs, 'q')": "write it in FROM or JOIN",
    "SELECT * FROM vector_search(docs, 'q', id)": "column 'id' cannot be searched",
    "SELECT * FROM vector_search(runtime.task_history, 'q')": "cannot be searched",
    "SELECT * FROM vector_search(source.fast, 'q')": "not found",
    "DELETE FROM vector_search(docs, 'q')": "rows cannot be deleted from",
    'SELECT * FROM "search 1".vector_search': "not found",
}


async def test_wrong_searches_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        for sql, message in WRONG.items():
            response = await runtime.sql(sql)
            assert response.status_code == 400, sql
            assert message in response.text
