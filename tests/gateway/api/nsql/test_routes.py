"""Questions over HTTP: the five forms, the stream, and the limits that no model can pass."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.responses import JSONResponse

from tests.gateway.api.accelerating import at_version
from tests.kit.runtime import Running, running
from tests.kit.scripted_provider import ScriptedProvider, completion, scripted

VERSIONED = "application/vnd.spiceai.nsql.v1+json"
MANIFEST = """
    runtime:
      auth: {{api-key: {{keys: ["writer:rw", "reader"]}}}}
    datasets:
      - from: memory:orders
        name: orders
        access: read_write
        description: Orders of all customers
        columns:
          - {{name: id, type: bigint}}
          - {{name: customer_id, type: bigint}}
          - {{name: state, type: text, description: open or shipped}}
        acceleration: {{enabled: true, primary_key: id, indexes: {{customer_id: enabled}}}}
      - from: memory:customers
        name: customers
        access: read_write
        columns: [{{name: id, type: bigint}}, {{name: name, type: text}}]
      - {{from: memory:secret, name: secret, columns: [{{name: word, type: text}}]}}
    views:
      - {{name: words, sql: SELECT word FROM secret}}
    functions:
      - name: doubled
        description: Twice x
        signature: {{args: [{{name: x, type: bigint}}], returns: bigint}}
        body: x * 2
      - {{name: all_words, kind: table, body: SELECT word FROM secret}}
    models:
      - from: openai:gpt-4o
        name: writer
        params: {{endpoint: {url}, openai_api_key: k, max_retries: 0, tools: auto}}
      - from: openai:gpt-4o
        name: limited
        datasets: [orders]
        params: {{endpoint: {url}, openai_api_key: k, max_retries: 0}}
"""


@asynccontextmanager
async def started(folder: Path, *said: str) -> AsyncIterator[tuple[Running, ScriptedProvider]]:
    async with scripted() as provider:
        provider.answers = [completion(each) for each in said or ("SELECT 1 AS one",)]
        async with running(folder, MANIFEST.format(url=provider.url)) as runtime:
            runtime.api.headers["x-api-key"] = "writer"
            await at_version(runtime, 1)
            await runtime.sql("INSERT INTO customers VALUES (7, 'Ann'), (8, 'Bob')")
            yield runtime, provider


async def ask(
    runtime: Running, accept: str = "application/json", key: str = "reader", **body: Any
) -> httpx.Response:
    asked = {"query": "how many customers?", "model": "writer", **body}
    headers = {"accept": accept, "x-api-key": key}
    return await runtime.api.post("/v1/nsql", json=asked, headers=headers)


async def test_five_forms_and_a_stream(tmp_path: Path) -> None:
    sql = "SELECT name FROM customers ORDER BY id"
    async with started(tmp_path, f"```sql\n{sql};\n```") as (runtime, provider):
        rows = await ask(runtime)
        assert rows.headers["content-type"] == "application/json"
        assert rows.json() == [{"name": "Ann"}, {"name": "Bob"}]
        versioned = await ask(runtime, VERSIONED)
        assert versioned.headers["content-type"] == VERSIONED
        body = versioned.json()
        assert (body["sql"], body["row_count"], body["data"]) == (sql, 2, rows.json())
        assert body["schema"]["fields"][0]["name"] == "name"
        written = await ask(runtime, "application/sql")
        assert (written.text, written.headers["content-type"]) == (
            sql, "application/sql; charset=utf-8",
        )  # fmt: skip
        assert (await ask(runtime, "text/csv")).text == "name\nAnn\nBob\n"
        assert "| Ann" in (await ask(runtime, "text/plain")).text
        assert (await ask(runtime, "image/png")).status_code == 406
        streamed = await ask(runtime, stream=True)
        assert streamed.headers["content-type"].startswith("text/event-stream")
        (frame,) = streamed.text.removesuffix("\n\n").split("\n\n")
        event = json.loads(frame.removeprefix("data: "))
        assert (event["sql"], event["data"]) == (sql, rows.json())
        same = await ask(runtime, "text/event-stream", stream=True)
        assert json.loads(same.text.removeprefix("data: "))["data"] == rows.json()
        assert (await ask(runtime, "text/event-stream")).status_code == 406
        table = await ask(runtime, "text/csv", stream=True)
        assert table.text == "data: name\ndata: Ann\ndata: Bob\n\n"
        assert "tools" not in provider.requests[0]


async def test_a_failure_of_the_provider_has_its_status(tmp_path: Path) -> None:
    async with started(tmp_path) as (runtime, provider):
        for given, told in ((401, 500), (402, 402), (429, 429), (500, 500), (503, 503), (504, 504)):
            provider.answers = [JSONResponse({"error": {}}, given, {"retry-after": "7"})]
            answer = await ask(runtime)
            assert answer.status_code == told
            assert answer.headers["content-type"].startswith("text/plain")
            wait = answer.headers.get("retry-after")
            assert wait == ("7" if given in (429, 503) else "2" if given == 504 else None)


async def test_a_line_of_an_event_ends_at_every_kind_of_line_end(tmp_path: Path) -> None:
    sql = "SELECT 'a' || chr(13) || 'b' AS text"
    async with started(tmp_path, sql) as (runtime, _):
        table = await ask(runtime, "text/csv", stream=True)
        assert "\r" not in table.text and table.text.startswith("data: text\ndata: ")


async def test_a_model_learns_from_the_error(tmp_path: Path) -> None:
    said = ("SELECT nmae FROM customers", "SELECT count(*) AS n FROM customers")
    async with started(tmp_path, *said) as (runtime, provider):
        answer = await ask(runtime)
        assert answer.json() == [{"n": 2}]
        told = provider.requests[1]["messages"][-1]["content"]
        assert "column 'nmae' not found" in told
        tasks = await runtime.sql(
            "SELECT count(*) AS n FROM runtime.task_history WHERE task = 'ai_completion'",
            **{"x-api-key": "reader"},
        )
        assert tasks.json() == [{"n": 2}]


async def test_no_statement_of_a_model_does_more_than_it_may(tmp_path: Path) -> None:
    """Even a key that may write, and a model that was talked into it by the data."""
    statements = [
        "DROP TABLE customers",
        "DELETE FROM customers",
        "INSERT INTO customers VALUES (9, 'x')",
        "UPDATE customers SET name = 'x'",
        "COPY customers TO '/tmp/x.csv'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM secret",
        "SELECT * FROM words",
        "SELECT * FROM all_words()",
        "SELECT * FROM (SELECT word AS name FROM secret) AS customers",
        "WITH customers AS (SELECT * FROM secret) SELECT * FROM customers",
        "SELECT name FROM customers UNION ALL SELECT word FROM secret",
        "SELECT * FROM runtime.task_history",
        "SELECT * FROM information_schema.tables",
        "SHOW TABLES",
    ]
    async with started(tmp_path) as (runtime, provider):
        for accept in ("application/json", "application/sql"):
            for sql in statements:
                provider.answers = [completion(sql)]
                provider.requests.clear()
                answer = await ask(runtime, accept, key="writer", datasets=["customers"])
                assert (sql, answer.status_code) == (sql, 500)
                assert "no query was produced" in answer.text
                assert len(provider.requests) == 5
                known = "\n".join(
                    each["content"] for each in provider.requests[-1]["messages"]
                    if each["role"] != "assistant"
                )  # fmt: skip
                assert "Known tables: customers." in known or "Known tables" not in known
        provider.answers = [completion("SELECT count(*) AS n FROM customers")]
        assert (await ask(runtime)).json() == [{"n": 2}]
        provider.answers = [completion("SELECT doubled(max(id)) AS n FROM customers")]
        assert (await ask(runtime, datasets=["customers"])).json() == [{"n": 16}]
        told = provider.requests[-1]["messages"][0]["content"]
        assert "\nFunctions that you may call:\n- doubled(x bigint) -- Twice x" in told
        assert "all_words" not in told


async def test_datasets_limit_what_is_told_and_read(tmp_path: Path) -> None:
    async with started(tmp_path, "SELECT word FROM words") as (runtime, provider):
        assert (await ask(runtime, datasets=["words"])).json() == []
        prompt = provider.requests[0]["messages"][0]["content"]
        assert "CREATE TABLE words" in prompt
        assert "secret" not in prompt and "customers" not in prompt
        provider.requests.clear()
        provider.answers = [completion("SELECT count(*) AS n FROM orders")]
        assert (await ask(runtime, model="limited")).json() == [{"n": 0}]
        assert "CREATE TABLE customers" not in provider.requests[0]["messages"][0]["content"]


async def test_samples_are_told_only_when_asked_for(tmp_path: Path) -> None:
    async with started(tmp_path) as (runtime, provider):
        await ask(runtime)
        await ask(runtime, sampledataenabled=True, prompt_cache_key="k1")
        without, with_samples = provider.requests
        assert "'Ann'" not in without["messages"][0]["content"]
        assert "name VARCHAR, -- one of: 'Ann', 'Bob'" in with_samples["messages"][0]["content"]
        assert with_samples["prompt_cache_key"] == "k1"
        joined = "orders.customer_id = customers.id"
        assert joined in without["messages"][0]["content"]


async def test_wrong_questions(tmp_path: Path) -> None:
    async with started(tmp_path) as (runtime, provider):
        for body, told in (
            ({"query": ""}, 'the field "query" must be a text'),
            ({"query": 5}, 'the field "query" must be a text'),
            ({"model": "nope"}, "model 'nope' not found; known: limited, writer"),
            ({"model": None}, "name a 'model', for the manifest has several: limited, writer"),
            ({"model": "nql"}, "name a 'model'"),
            ({"datasets": ["custmers"]}, "did you mean 'customers'"),
            ({"datasets": []}, "'datasets' names none"),
            ({"datasets": "customers"}, 'must be a list of names'),
            ({"model": "limited", "datasets": ["secret"]}, "the model may not read 'secret'"),
            ({"stream": "yes"}, 'the field "stream" must be true or false'),
            ({"qeury": "x"}, 'unknown field "qeury" in the request body; did you mean "query"?'),
        ):  # fmt: skip
            answer = await ask(runtime, **body)
            assert (answer.status_code, told in answer.text) == (400, True), answer.text
            assert answer.headers["content-type"].startswith("text/plain")
        broken = await runtime.api.post("/v1/nsql", content=b"{")
        assert broken.status_code == 400
        streamed = await ask(runtime, stream=True, datasets=["nope"])
        assert streamed.status_code == 400
        assert provider.requests == []


async def test_the_context_has_three_forms_and_every_field(tmp_path: Path) -> None:
    async with started(tmp_path) as (runtime, _):

        async def get(query: str = "", accept: str = "") -> httpx.Response:
            headers = {"accept": accept} if accept else {}
            return await runtime.api.get(f"/v1/nsql/context?{query}", headers=headers)

        page = await get()
        assert page.headers["content-type"] == "text/markdown; charset=utf-8"
        for title in ("Datasets", "Schemas", "Dataset Relationships", "SQL Functions"):
            assert f"\n## {title}\n" in page.text
        assert "Sample Data" not in page.text
        row = "| orders | state | Utf8 | YES | open or shipped |"
        assert row in page.text
        assert "`orders.customer_id` is `customers.id`" in page.text
        plain = await get("include_sampling=true&datasets=customers", "text/plain")
        assert plain.headers["content-type"] == "text/plain; charset=utf-8"
        assert "name: Ann, Bob" in plain.text and "orders" not in plain.text
        assert '{"id": 7, "name": "Ann"}' in plain.text
        few = await get("sample_data_enabled=true&include_examples=false&sampling_limit=1")
        assert "name: Ann, ..." in few.text and '"name": "Ann"' not in few.text
        document = (await get("include_sampling=true", "application/json")).json()
        assert set(document) == {
            "context",
            "instructions",
            "sql",
            "datasets",
            "functions",
            "samples",
        }
        assert set(document["sql"]) == {"engine", "version", "dialect", "parser", "notes"}
        orders = next(each for each in document["datasets"] if each["name"] == "orders")
        assert set(orders) == {
            "name", "catalog", "schema", "table", "description", "metadata", "columns",
            "primary_key", "unique_constraints", "foreign_keys", "indexes", "search",
        }  # fmt: skip
        assert (orders["schema"], orders["primary_key"]) == ("public", ["id"])
        assert orders["indexes"][0]["columns"] == ["customer_id"]
        assert orders["columns"][0] == {
            "name": "id", "data_type": "Int64", "nullable": True, "description": None,
            "source_type": "bigint", "metadata": {}, "primary_key": True, "unique": True,
            "indexed": False, "vector_search": False, "full_text_search": False,
        }  # fmt: skip
        assert set(document["functions"]) == {
            "summary", "json", "spice_specific", "spark_compatibility", "user_defined",
        }  # fmt: skip
        doubled, words = document["functions"]["user_defined"]
        assert doubled == {
            "name": "doubled", "syntax": "doubled(x bigint)", "description": "Twice x",
            "example": "SELECT doubled($x)",
        }  # fmt: skip
        assert words["example"] == "SELECT * FROM all_words()"
        assert "- `doubled(x bigint)`: Twice x\n- `all_words()`\n" in page.text
        assert {each["title"] for each in document["samples"]} == {"Sample data of customers"}
        limited = (await get("model=limited", "application/json")).json()
        assert [each["name"] for each in limited["datasets"]] == ["orders"]
        assert limited["functions"]["user_defined"] == [doubled]
        for query, accept, status in (
            ("", "image/png", 406), ("sampling_limit=0", "", 400), ("sampling_limit=101", "", 400),
            ("examples_limit=0", "", 400), ("datasets=nope", "", 400), ("model=nope", "", 400),
        ):  # fmt: skip
            assert (query, (await get(query, accept)).status_code) == (query, status)
