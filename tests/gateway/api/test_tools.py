"""Tools over HTTP: their list, the answers of calls, and the rights of calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.kit.runtime import Running, running

MANIFEST = """
        runtime:
          auth: {api-key: {keys: ["writer:rw", "reader"]}}
          task_history: {captured_output: truncated}
        datasets:
          - from: memory:orders
            name: orders
            access: read_write
            description: Orders of all customers
            columns:
              - {name: id, type: bigint}
              - {name: state, type: text, description: open or shipped}
            acceleration: {enabled: false}
          - {from: 'memory:wide', name: sales.wide, columns: [{name: 'Odd "name"', type: text}]}
        views:
          - {name: open_orders, sql: SELECT id FROM orders WHERE state = 'open'}
        tools:
          - from: builtin:list_datasets
            name: list_datasets
            params: {table_allowlist: 'orders, open_orders'}
          - from: sql
            name: by_state
            description: The orders in a state
            groups: [orders]
            sql: SELECT id FROM orders WHERE state = :state OR :state IS NULL ORDER BY id
            parameters: {state: {type: string, required: false}}
"""


@asynccontextmanager
async def started(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path, MANIFEST) as runtime:
        runtime.api.headers["x-api-key"] = "writer"
        await runtime.sql("INSERT INTO orders VALUES (1, 'open'), (2, 'shipped'), (3, 'open')")
        yield runtime


async def call(runtime: Running, name: str, arguments: Any, key: str = "writer") -> tuple[int, Any]:
    answer = await runtime.api.post(f"/v1/tools/{name}", json=arguments, headers={"x-api-key": key})
    is_json = answer.headers["content-type"] == "application/json"
    return answer.status_code, answer.json() if is_json else answer.text


async def test_integers_of_any_size_are_arguments(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        status, answer = await call(api, "by_state", {"state": 10**30})
        assert (status, "must be of type string" in answer["message"]) == (400, True)
        status, answer = await call(api, "sql", {"query": "SELECT 1 AS a", "x": 10**30})
        assert status == 400


async def test_tools_are_listed_with_schemas(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        listed = (await api.api.get("/v1/tools")).json()
        names = [tool["name"] for tool in listed]
        assert names == [
            "list_datasets", "sql", "table_schema", "random_sample", "sample_distinct_columns",
            "top_n_sample", "get_readiness", "by_state",
        ]  # fmt: skip
        assert all(set(tool) == {"name", "description", "parameters"} for tool in listed)
        assert all(
            tool["description"] and tool["parameters"]["type"] == "object" for tool in listed
        )
        by_state = listed[-1]
        assert by_state["parameters"]["properties"] == {"state": {"type": "string"}}


async def test_every_built_in_tool_answers(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        rows = [
            {"id": 1, "state": "open"},
            {"id": 2, "state": "shipped"},
            {"id": 3, "state": "open"},
        ]
        assert await call(api, "sql", {"query": "SELECT * FROM orders ORDER BY id"}) == (200, rows)
        listed = (await call(api, "list_datasets", {}))[1]
        assert [each["name"] for each in listed] == ["orders", "open_orders"]
        assert listed[0]["description"] == "Orders of all customers"
        full = await call(api, "table_schema", {"tables": ["ORDERS", "public.orders"]})
        assert full == (200, [SCHEMA, SCHEMA])
        minimal = {"tables": ["sales.wide"], "output": "minimal"}
        assert await call(api, "table_schema", minimal) == (
            200,
            [{"table": "sales.wide", "columns": [{"name": 'Odd "name"', "data_type": "Utf8"}]}],
        )
        sampled = (await call(api, "random_sample", {"tbl": "orders", "limit": 2}))[1]
        assert len(sampled) == 2 and all(row in rows for row in sampled)
        assert await call(api, "sample_distinct_columns", {"tbl": "orders"}) == (
            200,
            {"id": [1, 2, 3], "state": ["open", "shipped"]},
        )
        odd = {"tbl": "sales.wide", "cols": ['Odd "name"']}
        assert await call(api, "sample_distinct_columns", odd) == (200, {'Odd "name"': []})
        top = {"tbl": "orders", "order_by": "state desc, ID", "limit": 2}
        assert await call(api, "top_n_sample", top) == (200, [rows[1], rows[0]])
        readiness = (await call(api, "get_readiness", {}))[1]
        assert readiness["datasets"] == {"orders": "ready", "sales.wide": "ready"}
        assert readiness["views"] == {"open_orders": "ready"}


SCHEMA = {
    "table": "orders",
    "description": "Orders of all customers",
    "columns": [
        {"name": "id", "data_type": "Int64", "nullable": True},
        {"name": "state", "data_type": "Utf8", "nullable": True, "description": "open or shipped"},
    ],
}


async def test_a_statement_of_the_manifest_is_a_tool(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        assert await call(api, "by_state", {"state": "open"}) == (200, [{"id": 1}, {"id": 3}])
        assert len((await call(api, "by_state", {}))[1]) == 3
        injected = {"state": "x' OR 'a' = 'a"}
        assert await call(api, "by_state", injected) == (200, [])


async def test_the_alias_is_the_same_route(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        for path in ("/v1/tools/sql", "/v1/tool/sql"):
            answer = await api.api.post(path, content=b'{"query": "SELECT 1 AS one"}')
            assert (answer.status_code, answer.json()) == (200, [{"one": 1}])


WRONG: list[tuple[str, bytes, int, str]] = [
    ("nope", b"{}", 404, "no tool 'nope'"),
    ("a/b", b"{}", 404, "no tool 'a/b'"),
    ("sql", b"{}", 400, "argument 'query' is missing"),
    ("sql", b"", 400, "argument 'query' is missing"),
    ("sql", b"[1]", 400, "must be a JSON object"),
    ("sql", b"{'query'}", 400, "the arguments are not JSON"),
    ("sql", b"\xff", 400, "not UTF-8"),
    ("sql", b'{"query": "SELECT x FROM orders"}', 400, "column 'x' not found"),
    ("sql", b'{"query": "SELECT 1; SELECT 2"}', 400, ""),
    ("sql", b'{"query": "DROP TABLE orders"}', 400, "DROP TABLE is not supported"),
    ("sql", b'{"query": "INSERT INTO orders VALUES (9, NULL)"}', 403, "read-only"),
    ("sql", b'{"query": "DELETE FROM orders"}', 403, "read-only"),
    ("sql", b'{"query": "COPY orders TO \'/tmp/x.csv\'"}', 400, "not supported"),
    ("sql", b'{"query": "SELECT * FROM \'/etc/passwd\'"}', 400, "not found"),
    ("sql", b'{"query": "SELECT * FROM caraway_source.orders"}', 400, "not found"),
    ("table_schema", b'{"tables": ["order"]}', 400, "did you mean 'orders'"),
    ("top_n_sample", b'{"tbl": "orders", "order_by": "(SELECT 1)"}', 400, "no column"),
    ("random_sample", b'{"tbl": "orders", "limit": 1000000}', 400, "maximum of 100"),
]


async def test_wrong_calls(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        for name, body, status, told in WRONG:
            answer = await api.api.post(f"/v1/tools/{name}", content=body)
            assert (answer.status_code, told in answer.text) == (status, True), answer.text
            kind = "text/plain" if status == 404 else "application/json"
            assert answer.headers["content-type"].startswith(kind)
            if status != 404:
                assert list(answer.json()) == ["message"]
        counted = await call(api, "sql", {"query": "SELECT count(*) AS n FROM orders"})
        assert counted == (200, [{"n": 3}])


async def test_a_long_answer_is_cut(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        query = "SELECT value FROM generate_series(1, 100000)"
        status, cut = await call(api, "sql", {"query": query})
        assert (status, len(cut["rows"]), cut["is_truncated"]) == (200, 500, True)
        wide = "SELECT value, repeat('x', 2000) AS t FROM generate_series(1, 400)"
        status, cut = await call(api, "sql", {"query": wide})
        assert (status, cut["is_truncated"]) == (200, True)
        assert 100 < len(cut["rows"]) < 132


async def test_calls_are_in_the_history_of_their_caller(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        asked = {"query": "SELECT 5 AS five"}
        await call(api, "sql", asked, key="reader")
        await call(api, "sql", {"query": "SELECT nope"}, key="reader")
        sql = (
            "SELECT task, input, captured_output, error_message, span_id, parent_span_id "
            "FROM runtime.task_history WHERE task LIKE 'tool_use%' OR input = 'SELECT 5 AS five'"
        )
        mine = (await api.api.post("/v1/sql", content=sql.encode(),
                headers={"content-type": "text/plain", "x-api-key": "reader"})).json()  # fmt: skip
        statement, used, failed = mine
        assert (used["task"], used["input"]) == ("tool_use::sql", '{"query":"SELECT 5 AS five"}')
        assert used["captured_output"] == '[{"five":5}]'
        assert statement["parent_span_id"] == used["span_id"]
        assert "column 'nope' not found" in failed["error_message"]
        others = (await api.sql(sql)).json()
        assert others == []


async def test_search_of_tools(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        asked = "query=orders+in+a+state&keywords=orders&limit=1"
        answer = await api.api.get(f"/v1/tools/search?{asked}")
        assert [each["tool_id"] for each in answer.json()["tools"]] == ["by_state"]
        refused = await api.api.get("/v1/tools/search")
        assert (refused.status_code, list(refused.json())) == (400, ["message"])


async def test_without_a_key_nothing_is_answered(tmp_path: Path) -> None:
    async with started(tmp_path) as api:
        del api.api.headers["x-api-key"]
        assert (await api.api.get("/v1/tools")).status_code == 401
        assert (await api.api.post("/v1/tools/sql", json={})).status_code == 401
