"""Search functions in statements over HTTP and in jobs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

MANIFEST = """
    runtime:
      caching:
        sql_results: {item_ttl: 1h}
    datasets:
      - from: file:docs.parquet
        name: docs
        columns: [{name: body, full_text_search: {enabled: true, row_id: id}}]
      - {from: 'memory:kept', name: kept, access: read_write, columns: [{name: id, type: bigint}]}
      - from: file:docs.parquet
        name: fast
        acceleration: {enabled: true, engine: file, primary_key: id}
        columns:
          - name: body
            embeddings: [{from: 'builtin:wordllama', row_id: id}]
            full_text_search: {enabled: true, row_id: id}
    functions:
      - name: best
        kind: table
        signature: {args: [{name: words, type: text}, {name: below, type: bigint, default: 100}]}
        body: SELECT id FROM text_search(docs, $words) WHERE id < $below ORDER BY score DESC LIMIT 2
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

    async with running(folder, MANIFEST) as runtime:
        yield runtime


async def _rows(runtime: Running, sql: str, **parameters: Any) -> Any:
    response = await runtime.api.post("/v1/sql", json={"sql": sql, "parameters": parameters})
    assert response.status_code == 200, response.text
    return response.json()


async def _loaded(runtime: Running, name: str) -> None:
    async def look() -> bool:
        return bool((await runtime.sql(f"SELECT count(*) FROM {name}")).status_code == 200)

    await eventually(look, f"dataset {name} is loaded")


async def test_statements_search(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        sql = "SELECT id FROM text_search(docs, $w) WHERE id < $top ORDER BY score DESC LIMIT 2"
        assert await _rows(runtime, sql, w="red", top=4) == [{"id": 2}, {"id": 0}]
        assert await _rows(runtime, sql, w="red", top=9) == [{"id": 4}, {"id": 2}]
        assert await _rows(runtime, sql, w=None, top=9) == []


async def test_functions_search(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        assert await _rows(runtime, "SELECT id FROM best('red', 4)") == [{"id": 2}, {"id": 0}]
        sql = "SELECT id FROM best($w) ORDER BY id"
        assert await _rows(runtime, sql, w="red") == [{"id": 2}, {"id": 4}]
        answer = await runtime.sql("SELECT id FROM best(upper('red'))")
        assert answer.status_code == 400
        assert "an argument of text_search is not a constant" in answer.text
        assert "(the bodies of best are in the place of their calls)" in answer.text


async def test_views_search(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        assert await _rows(runtime, "SELECT id FROM hits ORDER BY score DESC, id LIMIT 2") == [
            {"id": 4},
            {"id": 2},
        ]
        assert await _rows(runtime, "SELECT count(*) AS n FROM more") == [{"n": 2}]
        listed = "SELECT column_name AS c FROM information_schema.columns WHERE table_name = 'hits'"
        assert await _rows(runtime, listed) == [{"c": "id"}, {"c": "score"}]

        async def stored() -> bool:
            response = await runtime.sql("SELECT id FROM stored ORDER BY score DESC, id")
            is_loaded = response.status_code == 200
            return is_loaded and bool(response.json() == [{"id": 4}, {"id": 2}, {"id": 0}])

        await eventually(stored, "the accelerated view has its rows")


async def test_searches_are_fused_reranked_and_explained(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        await _loaded(runtime, "fast")
        fusion = "rrf(vector_search(fast, $w), text_search(fast, $w, rank_weight => 2))"
        found = await _rows(runtime, f"SELECT id, fused_score FROM {fusion} LIMIT 4", w="red")
        assert {row["id"] for row in found} == {0, 2, 4, 5}
        assert found == sorted(found, key=lambda row: -row["fused_score"])
        sql = (
            "SELECT body FROM rerank(input => TABLE(SELECT body FROM text_search(fast, 'red')), "
            "query => 'blue') LIMIT 1"
        )
        assert await _rows(runtime, sql) == [{"body": "red blue"}]
        told = await _rows(runtime, f"EXPLAIN SELECT id FROM {fusion} WHERE id > 1", w="red")
        plan = told[-1]["plan"]
        assert "weight 2: text search of fast.body" in plan
        assert 'filter=("fast"."id" > 1)' in plan


async def test_results_are_cached_and_inserted(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        sql = "SELECT id FROM text_search(docs, 'red', 2)"
        for name in ("fast", "stored"):
            await _loaded(runtime, name)
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


CHANGING = """
    datasets:
      - from: cdc:orders
        name: orders
        access: read_write
        columns:
          - {name: id, type: bigint}
          - {name: v, type: text, full_text_search: {enabled: true, row_id: id}}
        acceleration: {enabled: true, primary_key: id}
"""


async def test_rows_are_changed_by_what_is_found(tmp_path: Path) -> None:
    async with running(tmp_path, CHANGING) as runtime:
        await _loaded(runtime, "orders")
        await _rows(runtime, "INSERT INTO orders VALUES (1, 'red'), (2, 'blue'), (3, 'red red')")
        found = "SELECT id FROM text_search(orders, '{}')"
        await _rows(runtime, f"DELETE FROM orders WHERE id IN ({found.format('red')} LIMIT 1)")
        assert await _rows(runtime, found.format("red")) == [{"id": 1}]
        await _rows(runtime, f"UPDATE orders SET v = 'x' WHERE id IN ({found.format('blue')})")
        await _rows(runtime, "INSERT INTO orders SELECT id + 10, v FROM text_search(orders, 'red')")
        assert await _rows(runtime, "SELECT id, v FROM orders ORDER BY id") == [
            {"id": 1, "v": "red"},
            {"id": 2, "v": "x"},
            {"id": 11, "v": "red"},
        ]


WRONG = {
    "SELECT * FROM vector_search(nope, 'q')": "nope",
    "SELECT * FROM vector_search(docs)": "line 1, column 15: vector_search: `query` is missing",
    "SELECT vector_search(docs, 'q')": "write it in FROM or JOIN",
    "SELECT * FROM vector_search(docs, 'q')": "'docs' has no column for vector search",
    "SELECT * FROM text_search(docs, 'q', id)": "for text search are body; 'id' is none of them",
    "SELECT * FROM vector_search(runtime.task_history, 'q')": "cannot be searched",
    "SELECT * FROM vector_search(source.fast, 'q')": "not found",
    "DELETE FROM vector_search(docs, 'q')": "rows cannot be deleted from",
    'SELECT * FROM "search$1".vector_search': "not found",
}


async def test_wrong_searches_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as runtime:
        for sql, message in WRONG.items():
            response = await runtime.sql(sql)
            assert response.status_code == 400, sql
            assert message in response.text
