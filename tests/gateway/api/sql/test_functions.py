"""Functions of the manifest in statements, over every road that statements take."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from caraway_core import manifest as manifests
from tests.kit.runtime import Running, running

MANIFEST = """
        runtime:
          auth: {api-key: {keys: ["writer:rw", "reader"]}}
        datasets:
          - from: memory:orders
            name: orders
            access: read_write
            columns:
              - {name: id, type: bigint}
              - {name: region, type: text}
              - {name: amount, type: double}
        functions:
          - name: net_price
            description: The price without tax.
            signature:
              args: [{name: gross, type: double}, {name: rate, type: double, default: 0.25}]
              returns: double
            body: gross / (1 + rate)
          - name: twice
            signature: {args: [{name: amount, type: double}], returns: double}
            body: amount + amount
          - name: orders_of
            kind: table
            signature: {args: [{name: region, type: text}, {name: least, type: double, default: 0}]}
            body: SELECT * FROM orders WHERE region = $region AND amount >= $least
          - name: secret
            as_tool: false
            signature: {returns: int}
            body: '42'
        tools:
          - from: sql
            name: regions
            as_sql: true
            sql: SELECT DISTINCT region FROM orders WHERE amount >= :least ORDER BY region
            parameters: {least: {type: number, default: 20}}
        views:
          - {name: net_orders, sql: 'SELECT id, net_price(amount) AS net FROM orders'}
"""


@asynccontextmanager
async def started(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path, MANIFEST) as runtime:
        runtime.api.headers["x-api-key"] = "writer"
        await runtime.sql("INSERT INTO orders VALUES (1, 'n', 10), (2, 's', 20), (3, 'n', 30)")
        yield runtime


async def rows(runtime: Running, sql: str, **parameters: Any) -> Any:
    body = {"sql": sql, "parameters": parameters}
    answer = await runtime.api.post("/v1/sql", json=body)
    return answer.json() if answer.status_code == 200 else answer.text


ANSWERS: list[tuple[str, Any]] = [
    ("SELECT net_price(10)", [{"net_price(10)": 8.0}]),
    ("SELECT NET_PRICE(amount, rate => 1) AS n FROM orders ORDER BY n LIMIT 1", [{"n": 5.0}]),
    ("SELECT sum(twice(amount)) AS n FROM orders", [{"n": 120.0}]),
    ("SELECT twice(sum(amount)) AS n FROM orders", [{"n": 120.0}]),
    ("SELECT twice(twice(twice(1))) AS n", [{"n": 8.0}]),
    ("SELECT twice(NULL) AS n", [{"n": None}]),
    ("SELECT count(*) AS n FROM orders_of('n')", [{"n": 2}]),
    ("SELECT o.id FROM orders_of('n', least => 20) o", [{"id": 3}]),
    ("SELECT orders_of.id FROM orders_of(concat('s', ''))", [{"id": 2}]),
    ("SELECT id FROM net_orders WHERE net = net_price(10)", [{"id": 1}]),
    (
        "SELECT 'net_price(1)' AS a, \"twice\"(1) AS b -- twice(",
        [{"a": "net_price(1)", "b": 2.0}],
    ),
    ("SELECT region FROM regions() ORDER BY 1", [{"region": "n"}, {"region": "s"}]),
    ("SELECT region FROM regions(least => 21)", [{"region": "n"}]),
    ("WITH twice(a) AS (SELECT 1) SELECT a FROM twice", [{"a": 1}]),
    ("SELECT twice FROM (SELECT 7 AS twice) AS net_price(twice)", [{"twice": 7}]),
    (
        "SELECT region, count(*) AS n FROM orders GROUP BY region, twice(amount) > 30 "
        "HAVING count(*) > 0 ORDER BY region, n",
        [{"region": "n", "n": 1}, {"region": "n", "n": 1}, {"region": "s", "n": 1}],
    ),
]


REFUSED = [
    ("SELECT net_price()", "line 1, column 8: net_price: its argument `gross` is missing; it is "
     "net_price(gross double, rate double = 0.25)"),
    ("SELECT net_price(1, 2, 3)", "net_price: it has too many arguments"),
    ("SELECT net_price(1, tax => 2)", "net_price: no argument 'tax'; known: gross, rate"),
    ("SELECT net_price(rate => 1, rate => 2)", "its argument `rate` is given twice"),
    ("SELECT net_price(rate => 1, 2)", "arguments with a name come last"),
    ("SELECT net_price(1,)", "an argument is empty"),
    ("SELECT net_price(DISTINCT amount) FROM orders", "it is no aggregate: DISTINCT"),
    ("SELECT net_price(*) FROM orders", "it is no aggregate: *"),
    ("SELECT net_price(1) OVER ()", "it is no aggregate, so OVER cannot follow it"),
    ("SELECT twice(random())", "its argument `amount` calls random(), and the body uses it more"),
    ("SELECT * FROM twice(1)", "write it where an expression stands"),
    ("SELECT orders_of('n')", "it is a table: write it in FROM or JOIN"),
    ("SELECT * FROM orders o, orders_of(o.region)", "its argument `region` must be a constant"),
    ("SELECT * FROM orders_of((SELECT 'n'))", "its argument `region` must be a constant"),
    ("SELECT " + "twice(" * 24 + "1" + ")" * 24, "the calls become more than 1,048,576 characters"),
    ("SELECT " + "net_price(" * 40 + "1" + ")" * 40, "calls are nested more than 32 deep"),
    ("SELECT twice(amount) FROM nowhere", "(the bodies of twice are in the place of their calls)"),
    ("SELECT public.twice(1)", "twice"),
]  # fmt: skip


async def test_calls_answer(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        for sql, expected in ANSWERS:
            assert await rows(runtime, sql) == expected, sql
        for sql, message in REFUSED:
            answer = await runtime.sql(sql)
            assert (answer.status_code, message in answer.text) == (400, True), answer.text


async def test_placeholders_are_arguments(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        found = await rows(runtime, "SELECT twice(:a) AS a, net_price(:a, :b) AS b", a=4, b=1)
        assert found == [{"a": 8.0, "b": 2.0}]
        body = {"sql": "SELECT twice(?) AS a, net_price(?) AS b, ? AS c", "parameters": [4, 5, 6]}
        answer = await runtime.api.post("/v1/sql", json=body)
        assert answer.json() == [{"a": 8.0, "b": 4.0, "c": 6}]
        found = await rows(
            runtime, "SELECT id FROM orders_of($region, $least)", region="n", least=20
        )
        assert found == [{"id": 3}]


async def test_rights_are_those_of_the_bodies(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        reader = {"x-api-key": "reader"}
        answer = await runtime.sql("INSERT INTO orders SELECT * FROM orders_of('n')", **reader)
        assert answer.status_code == 403
        answer = await runtime.sql("INSERT INTO orders VALUES (4, 'w', twice(4))")
        assert answer.status_code == 200
        assert await rows(runtime, "SELECT amount FROM orders_of('w')") == [{"amount": 8.0}]
        plan = await rows(runtime, "EXPLAIN SELECT twice(amount) FROM orders")
        assert "amount" in str(plan) and "twice" in str(plan)


async def test_jobs_and_changed_functions(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        body = {"sql": "SELECT net_price(amount) AS n FROM orders_of('s')"}
        job = (await runtime.api.post("/v1/queries", json=body)).json()
        await runtime.api.get(f"{job['status_url']}?wait=30")
        answer = await runtime.api.get(job["results_url"], headers={"accept": "text/csv"})
        assert answer.text == "n\n16.0\n"

        assert await rows(runtime, body["sql"]) == [{"n": 16.0}]
        path = tmp_path / "caraway.yaml"
        path.write_text(path.read_text().replace("gross / (1 + rate)", "gross - rate"))
        assert runtime.services.functions.apply(manifests.load(path))
        runtime.services.queries.invalidate()
        assert await rows(runtime, body["sql"]) == [{"n": 19.75}]


async def test_functions_are_listed_and_are_tools(tmp_path: Path) -> None:
    async with started(tmp_path) as runtime:
        listed = (await runtime.api.get("/v1/functions")).json()
        assert [each["name"] for each in listed] == [
            "regions", "net_price", "twice", "orders_of", "secret",
        ]  # fmt: skip
        assert listed[1] == {
            "name": "net_price",
            "kind": "scalar",
            "volatility": "immutable",
            "from": "sql",
            "signature": "net_price(gross double, rate double = 0.25)",
            "description": "The price without tax.",
            "parameters": [
                {"name": "gross", "type": "double", "description": None, "default": None},
                {"name": "rate", "type": "double", "description": None, "default": "0.25"},
            ],
            "returns": "double",
            "as_tool": True,
            "metadata": {},
        }
        table = (await runtime.api.get("/v1/functions?format=csv")).text.splitlines()
        assert table[0] == "name,kind,volatility,from,signature,description,as_tool"
        assert table[-1] == "secret,scalar,immutable,sql,secret(),,false"
        toolbox = runtime.services.tools.toolbox
        assert [tool.name for tool in toolbox.chosen("functions")] == [
            "net_price", "twice", "orders_of",
        ]  # fmt: skip
        assert {"net_price", "orders_of"} <= {tool.name for tool in toolbox.chosen("auto")}

        async def call(name: str, **arguments: Any) -> Any:
            answer = await runtime.api.post(f"/v1/tools/{name}", json=arguments)
            return answer.json() if answer.status_code != 404 else answer.status_code

        assert await call("net_price", gross=10) == 8.0
        assert await call("net_price", gross=10, rate=1) == 5.0
        assert await call("orders_of", region="s") == [{"id": 2, "region": "s", "amount": 20.0}]
        assert "'gross' is missing" in (await call("net_price"))["message"]
        assert "must be of type number" in (await call("twice", amount="x"))["message"]
        assert await call("secret") == 404
        assert await call("regions", least=30) == [{"region": "n"}]
