import asyncio
import gzip
import io
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from tests.kit import sql_texts
from tests.kit.runtime import Running, running
from tests.kit.shared_runtime import entered
from tests.kit.turns import turn

MANIFEST = """
    runtime:
      caching:
        sql_results: {item_ttl: 1h}
    datasets:
      - from: file:people.csv
        name: people
      - from: memory:log
        name: log
        access: read_write
        columns: [{name: a, type: bigint}]
"""
ENDLESS = "SELECT sum(value) FROM generate_series(1, 1000000000000)"


async def serve(folder: Path, extra: str = "") -> AsyncIterator[Running]:
    (folder / "people.csv").write_text("id,name\n1,Ann\n2,\n3,Bob\n")
    async with running(folder, MANIFEST + extra) as runtime:
        yield runtime


@pytest.fixture(scope="module")
def runtime(
    loop_of_module: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A runtime for tests that change nothing."""
    folder = tmp_path_factory.mktemp("sql")
    with entered(loop_of_module, lambda: asynccontextmanager(serve)(folder)) as made:
        yield made


async def body(response: Any) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


async def test_rows_are_json_by_default(runtime: Running) -> None:
    response = await runtime.api.post("/v1/sql", content="SELECT * FROM people ORDER BY id")
    assert await body(response) == [
        {"id": 1, "name": "Ann"}, {"id": 2, "name": None}, {"id": 3, "name": "Bob"},
    ]  # fmt: skip
    assert response.headers["content-type"] == "application/json"
    uuid.UUID(response.headers["x-query-id"])


async def test_every_format(runtime: Running) -> None:
    sql = "SELECT id, name FROM people WHERE id < 3 ORDER BY id"
    csv = await runtime.sql(sql, "text/csv")
    assert csv.text == "id,name\n1,Ann\n2,\n"
    assert csv.headers["content-type"] == "text/csv; charset=utf-8"
    text = await runtime.sql(sql, "text/plain")
    assert text.text.splitlines()[1:4] == ["| id | name |", "+----+------+", "| 1  | Ann  |"]
    lines = await runtime.sql(sql, "application/x-ndjson")
    assert [json.loads(line) for line in lines.text.splitlines()][1] == {"id": 2, "name": None}
    arrow = await runtime.sql(sql, "application/vnd.apache.arrow.stream")
    assert pa.ipc.open_stream(arrow.content).read_all().to_pylist()[0]["name"] == "Ann"
    versioned = await runtime.sql(sql, "application/vnd.spiceai.sql.v1+json")
    document = await body(versioned)
    assert versioned.headers["content-type"] == "application/vnd.spiceai.sql.v1+json"
    assert document["row_count"] == 2
    assert [field["data_type"] for field in document["schema"]["fields"]] == ["Int64", "Utf8"]
    assert document["data"][0] == {"id": 1, "name": "Ann"}


@pytest.mark.parametrize(
    ("parameters", "sql", "answer"),
    [
        (
            ["b", 5, 1],
            "SELECT sum(CASE WHEN s = $1 THEN $2 ELSE $3 END) AS n FROM (VALUES ('a'), ('b')) x(s)",
            [{"n": 6}],
        ),
        (["a", "b"], "SELECT ? || ? AS n", [{"n": "ab"}]),
        ([2.5], "SELECT v FROM (VALUES (1), (?)) x(v) ORDER BY v", [{"v": 1.0}, {"v": 2.5}]),
        ({"n": "Ann"}, "SELECT id FROM people WHERE name = :n", [{"id": 1}]),
        ({"n": 3}, "SELECT name FROM people WHERE id = $n", [{"name": "Bob"}]),
        ([2, "Ann"], "SELECT id FROM people WHERE id < $1 AND name = $2", [{"id": 1}]),
        ([2, "Ann"], "SELECT id FROM people WHERE id < ? AND name = ?", [{"id": 1}]),
        ({"$n": None}, "SELECT :n AS x", [{"x": None}]),
        (None, "SELECT 1 AS x", [{"x": 1}]),
    ],
)
async def test_values_are_bound(
    runtime: Running, parameters: Any, sql: str, answer: list[dict[str, Any]]
) -> None:
    response = await runtime.api.post("/v1/sql", json={"sql": sql, "parameters": parameters})
    assert await body(response) == answer


@pytest.mark.parametrize(
    ("content", "content_type", "message"),
    [
        (b"SELECT '\xff'", "text/plain", "not UTF-8: byte 8 (0xff)"),
        (b"", "text/plain", "the statement is empty"),
        (b"  \n", "text/plain", "the statement is empty"),
        (b'{"sql": "SELECT 1"', "application/json", "is not JSON"),
        (b"[" * 100_000, "application/json", "is not JSON"),
        (b"[1]", "application/json", "must be an object"),
        (b'{"sql": 1}', "application/json", '"sql" must be a string'),
        (b'{"sql": "SELECT 1", "parameterz": {}}', "application/json",
         'did you mean "parameters"?'),
        (b'{"sql": "SELECT 1", "parameters": 3}', "application/json", "an object (for :name"),
        (b'{"sql": "SELECT :a", "parameters": {}}', "application/json", "parameter $a"),
        (b'{"sql": "SELECT :a", "parameters": {"a": NaN}}', "application/json", "NaN"),
        (b'{"sql": "SELECT :a", "parameters": {"a": {}}}', "application/json", "cannot be bound"),
        (b'{"sql": "SELECT 1", "parameters": {"a": 1}}', "application/json", "does not use"),
        (b"SELEC 1", "text/plain", "syntax error"),
        (b"SELECT nam FROM people", "text/plain", "did you mean"),
        (b"SELECT * FROM peeple", "text/plain", "did you mean 'people'?"),
        (b"DROP TABLE people", "text/plain", "is not supported"),
    ],
)  # fmt: skip
async def test_bad_input_is_400_in_plain_text_and_the_next_query_works(
    runtime: Running, content: bytes, content_type: str, message: str
) -> None:
    response = await runtime.api.post(
        "/v1/sql", content=content, headers={"content-type": content_type}
    )
    assert response.status_code == 400
    assert response.headers["content-type"].startswith("text/plain")
    assert message in response.text
    assert await body(await runtime.sql("SELECT 1 AS x")) == [{"x": 1}]


async def test_large_body_is_413(tmp_path: Path) -> None:
    async with running(
        tmp_path, MANIFEST, altered=lambda made: replace(made, max_body_bytes=1000)
    ) as runtime:

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b"-" * 100

        declared = await runtime.api.post("/v1/sql", content=b"-" * 2000)
        undeclared = await runtime.api.post("/v1/sql", content=chunks())
        assert (declared.status_code, undeclared.status_code) == (413, 413)
        assert "larger than 1000 bytes" in undeclared.text


async def test_nothing_acceptable_is_406(runtime: Running) -> None:
    response = await runtime.sql("SELECT 1", "image/png")
    assert response.status_code == 406
    assert "application/json" in response.text


@pytest.mark.parametrize("rows", [500, 50_000])
async def test_answers_are_compressed_when_asked_for(runtime: Running, rows: int) -> None:
    sql = f"SELECT value AS v FROM generate_series(1, {rows})"
    plain = (await runtime.sql(sql, **{"accept-encoding": "identity"})).content
    for name, decompress in (
        ("gzip", gzip.decompress),
        (
            "zstd",
            lambda raw: zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw)).read(),
        ),
    ):
        request = runtime.api.build_request(
            "POST", "/v1/sql", content=sql,
            headers={"accept-encoding": name, "cache-control": "no-cache"},
        )  # fmt: skip
        response = await runtime.api.send(request, stream=True)
        raw = b"".join([chunk async for chunk in response.aiter_raw()])
        assert response.headers["content-encoding"] == name
        assert len(raw) < len(plain) / 2
        assert decompress(raw) == plain


async def test_cache_says_hit_miss_and_bypass(tmp_path: Path) -> None:
    async for runtime in serve(tmp_path):
        sql = "SELECT count(*) AS n FROM people"
        first, second = await runtime.sql(sql), await runtime.sql(sql)
        fresh = await runtime.sql(sql, **{"cache-control": "no-cache"})
        assert [r.headers["results-cache-status"] for r in (first, second, fresh)] == [
            "MISS", "HIT", "BYPASS",
        ]  # fmt: skip
        assert first.content == second.content == fresh.content
        assert first.headers["results-cache-scope"] == "shared"
        text = await runtime.sql(sql, "text/csv")
        assert (text.headers["results-cache-status"], text.text) == ("HIT", "n\n3\n")


@pytest.mark.parametrize("sql", ["SELECT now() AS t", "SHOW TABLES", "EXPLAIN SELECT 1"])
async def test_time_dependent_answers_are_not_cached(runtime: Running, sql: str) -> None:
    for _ in range(2):
        response = await runtime.sql(sql)
        assert response.status_code == 200
        assert "results-cache-status" not in response.headers


async def test_write_invalidates_cached_answers(tmp_path: Path) -> None:
    async for runtime in serve(tmp_path):
        assert await body(await runtime.sql("SELECT count(*) AS n FROM log")) == [{"n": 0}]
        assert await body(await runtime.sql("INSERT INTO log VALUES (1)")) == [{"count": 1}]
        assert await body(await runtime.sql("SELECT count(*) AS n FROM log")) == [{"n": 1}]


async def test_write_to_a_read_only_dataset_is_403(runtime: Running) -> None:
    response = await runtime.sql("INSERT INTO people VALUES (1, 'x')")
    assert response.status_code == 403
    assert "dataset 'people' is read-only" in response.text


async def test_query_that_never_ends_is_504(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n")
    manifest = "runtime:\n  query: {timeout: 2s}\n"
    async with running(tmp_path, manifest) as runtime:
        response = await runtime.sql(ENDLESS)
        assert response.status_code == 504
        assert "within 2 s" in response.text
        assert await body(await runtime.sql("SELECT 1 AS x")) == [{"x": 1}]
        assert len(runtime.services.queries.active) == 0


@pytest.mark.parametrize("explain", ["", "EXPLAIN "])
async def test_statement_that_is_planned_for_too_long_is_504(tmp_path: Path, explain: str) -> None:
    manifest = "runtime:\n  query: {planning_timeout: 500ms}\n"
    async with running(tmp_path, manifest) as runtime:
        response = await runtime.sql(explain + sql_texts.planned_for_long("SELECT 1 AS a"))
        assert response.status_code == 504
        assert "not planned within 0.5 s" in response.text
        assert "raise runtime.query.planning_timeout" in response.text
        assert await body(await runtime.sql("SELECT 1 AS x")) == [{"x": 1}]


async def test_active_queries_are_listed_and_cancelled(tmp_path: Path) -> None:
    async for runtime in serve(tmp_path):
        running_query = asyncio.create_task(runtime.sql(ENDLESS))
        listed: dict[str, Any] = {"total_count": 0}
        while not listed["total_count"]:
            await turn()
            listed = await body(await runtime.api.get("/v1/sql/active"))
        query = listed["queries"][0]
        assert query["protocol"] == "http"
        assert query["sql_preview"] == ENDLESS
        cancelled = await runtime.api.post(f"/v1/sql/{query['query_id']}/cancel")
        assert await body(cancelled) == {"query_id": query["query_id"], "status": "cancelled"}
        response = await running_query
        assert (response.status_code, response.text) == (499, "the query was cancelled")
        again = await runtime.api.post(f"/v1/sql/{query['query_id']}/cancel")
        assert again.status_code == 404
        assert "no active query" in again.json()["error"]


async def test_cancel_wants_a_uuid(runtime: Running) -> None:
    response = await runtime.api.post("/v1/sql/nonsense/cancel")
    assert response.status_code == 400
    assert response.json() == {"error": "'nonsense' is not a query id; query ids are UUIDs"}


async def test_full_queue_is_429_with_retry_after(tmp_path: Path) -> None:
    manifest = "runtime:\n  query: {max_concurrent_queries: 1, max_queued_queries: 1}\n"
    async with running(tmp_path, manifest) as runtime:
        tasks = [asyncio.create_task(runtime.sql(ENDLESS)) for _ in range(2)]
        admission = runtime.services.queries.admission
        while not (admission.running and admission.queued):
            await turn()
        refused = await runtime.sql("SELECT 1")
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert "max_queued_queries" in refused.text
        runtime.services.queries.active.stop_all("cancelled")
        assert {task.status_code for task in await asyncio.gather(*tasks)} == {499}


async def test_client_that_disconnects_cancels_its_query(tmp_path: Path) -> None:
    async for runtime in serve(tmp_path):
        task = asyncio.create_task(runtime.sql(ENDLESS))
        active = runtime.services.queries.active
        while not len(active):
            await turn()
        task.cancel()
        await asyncio.wait_for(active.wait_idle(), 60)


async def test_large_answer_is_streamed_completely(runtime: Running) -> None:
    sql = "SELECT value AS v FROM generate_series(1, 300000)"
    rows = await body(await runtime.sql(sql))
    assert len(rows) == 300_000
    assert sum(row["v"] for row in rows) == 300_000 * 300_001 // 2
    table = await runtime.sql(sql, "application/vnd.apache.arrow.stream")
    assert pa.ipc.open_stream(table.content).read_all().num_rows == 300_000


async def test_empty_answer_has_its_format(runtime: Running) -> None:
    sql = "SELECT id FROM people WHERE false"
    assert (await runtime.sql(sql)).text == "[]"
    assert (await runtime.sql(sql, "text/csv")).text == "id\n"
    assert (await runtime.sql(sql, "application/x-ndjson")).text == ""
    versioned = (await runtime.sql(sql, "application/vnd.caraway.sql.v1+json")).json()
    assert (versioned["row_count"], versioned["data"]) == (0, [])


async def test_file_that_vanishes_or_is_corrupt_is_500_and_the_runtime_lives_on(
    tmp_path: Path,
) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": list(range(100_000))}), tmp_path / "numbers.parquet")
    manifest = (
        "datasets:\n  - {from: 'file:numbers.parquet', name: numbers}\n"
        "views:\n  - {name: v, sql: SELECT * FROM numbers}\n"
    )
    async with running(tmp_path, manifest) as runtime:
        assert await body(await runtime.sql("SELECT count(*) AS n FROM numbers"))
        whole = (tmp_path / "numbers.parquet").read_bytes()
        (tmp_path / "numbers.parquet").write_bytes(whole[:4] + b"\0" * 1000 + whole[1004:])
        corrupt = await runtime.sql("SELECT sum(a) FROM numbers", **{"cache-control": "no-cache"})
        assert corrupt.status_code == 500
        assert "cannot be read" in corrupt.text
        (tmp_path / "numbers.parquet").unlink()
        for table in ("numbers", "v"):
            gone = await runtime.sql(f"SELECT max(a) FROM {table}")
            assert gone.status_code == 500
            assert "numbers.parquet' is missing; restore it" in gone.text
        assert await body(await runtime.sql("SELECT 1 AS x")) == [{"x": 1}]


async def test_task_history_holds_each_statement_with_its_trace(tmp_path: Path) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    async for runtime in serve(tmp_path):
        await runtime.sql("SELECT 41 AS x", traceparent=f"00-{trace}-00f067aa0ba902b7-01")
        await runtime.sql("SELECT nope")
        rows = await body(
            await runtime.sql("SELECT * FROM runtime.task_history ORDER BY start_time")
        )
        assert rows[0]["trace_id"] == trace
        assert rows[0]["parent_span_id"] == "00f067aa0ba902b7"
        assert (rows[0]["task"], rows[0]["input"]) == ("sql_query", "SELECT 41 AS x")
        assert rows[0]["labels"]["protocol"] == "http"
        assert rows[0]["execution_duration_ms"] > 0
        assert "column 'nope' not found" in rows[1]["error_message"]
        assert rows[0]["node_id"] == rows[1]["node_id"] != ""
