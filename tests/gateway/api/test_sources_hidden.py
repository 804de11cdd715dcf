"""The source of an accelerated dataset is visible to the runtime but not to users."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.gateway.api.accelerating import at_version
from tests.kit.runtime import Running, running
from tests.kit.shared_runtime import entered

MANIFEST = """
        runtime:
          auth: {api-key: {keys: ["writer:rw", "root:admin"]}}
        datasets:
          - from: memory:orders
            name: orders
            access: read_write
            columns: [{name: id, type: bigint}, {name: v, type: text}]
            acceleration: {enabled: true, on_zero_results: use_source}
          - from: memory:sales
            name: sales.orders
            columns: [{name: id, type: bigint}]
            acceleration: {enabled: true}
        views:
          - {name: around, sql: SELECT * FROM caraway_source.orders}
"""
NAMES = [
    "caraway_source.orders", '"caraway_source"."orders"', "CARAWAY_SOURCE.orders",
    "Caraway_Source.Orders", "caraway.caraway_source.orders",
    '"caraway"."caraway_source"."orders"', "caraway_source.sales__orders",
    "caraway_source . orders", "caraway_source/**/.orders",
]  # fmt: skip
STATEMENTS = [
    "SELECT * FROM {}", "SELECT id FROM {} AS t WHERE id > 1", "EXPLAIN SELECT * FROM {}",
    "EXPLAIN ANALYZE SELECT * FROM {}", "WITH t AS (SELECT * FROM {}) SELECT * FROM t",
    "WITH caraway_source AS (SELECT 1) SELECT * FROM {}",
    "SELECT (SELECT count(*) FROM {})", "SELECT * FROM orders WHERE id IN (SELECT id FROM {})",
    "SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM {})", "SELECT 1 UNION ALL SELECT id FROM {}",
    "SELECT * FROM orders JOIN LATERAL (SELECT * FROM {}) AS t ON true", "TABLE {}",
    "INSERT INTO {} VALUES (1, 'a')", "EXPLAIN INSERT INTO {} VALUES (1, 'a')",
    "DESCRIBE {}", "SHOW COLUMNS FROM {}", "SHOW CREATE TABLE {}",
]  # fmt: skip


@pytest.fixture(scope="module")
def runtime(
    loop_of_module: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("hidden")
    with entered(loop_of_module, lambda: running(folder, MANIFEST)) as made:
        yield made


@pytest.mark.parametrize("key", ["writer", "root"])
async def test_no_statement_of_a_user_reaches_it(runtime: Running, key: str) -> None:
    runtime.api.headers["x-api-key"] = key
    await at_version(runtime, 1)
    for name in NAMES:
        for statement in STATEMENTS:
            sql = statement.format(name)
            answer = await runtime.sql(sql)
            assert answer.status_code in (400, 403), (sql, answer.text)
            assert (
                "Known tables" not in answer.text
                or "caraway_source" not in (answer.text.partition("Known tables")[2])
            )
    # The runtime's own plan of the same text must not help a user.
    own = "SELECT * FROM caraway_source.orders"
    assert await runtime.own(own) == []
    assert (await runtime.sql(own)).status_code == 400


async def test_refusal_is_that_of_a_table_that_does_not_exist(runtime: Running) -> None:
    runtime.api.headers["x-api-key"] = "writer"
    await at_version(runtime, 1)
    answer = await runtime.sql("SELECT * FROM caraway_source.orders")
    assert answer.status_code == 400
    assert answer.text.startswith("table 'caraway_source.orders' not found")
    submitted = await runtime.api.post(
        "/v1/queries", json={"sql": "SELECT * FROM caraway_source.orders"}
    )
    state = await _ended(runtime, submitted.json()["query_id"])
    assert state["error"]["error_code"] == "SUBMISSION_FAILED"
    for call in (
        runtime.api.post("/v1/datasets/caraway_source.orders/acceleration/refresh"),
        runtime.api.get("/v1/datasets/caraway_source.orders/acceleration"),
        runtime.api.post("/v1/datasets/caraway_source.orders/cdc", content=b"{}"),
    ):
        assert (await call).status_code in (400, 404)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT table_schema FROM information_schema.tables",
        "SELECT table_schema FROM information_schema.columns",
        "SELECT table_name FROM information_schema.views",
        "SELECT * FROM information_schema.schemata",
        "SELECT * FROM Information_Schema.SCHEMATA AS s WHERE s.schema_name <> 'x'",
        "WITH a AS (SELECT * FROM information_schema.schemata) SELECT * FROM a, a AS b",
        "SELECT (SELECT max(schema_name) FROM information_schema.schemata)",
        "EXPLAIN ANALYZE SELECT * FROM information_schema.schemata",
        "SELECT * FROM information_schema.df_settings",
        "SELECT * FROM other.information_schema.df_settings",
        "SELECT * FROM caraway.information_schema.schemata",
        'SELECT * FROM "other"."information_schema".schemata',
        "SELECT * FROM information_schema.df_settings, information_schema.schemata",
        "SELECT * FROM information_schema.routines",
        "SELECT * FROM information_schema.parameters",
        "SHOW datafusion.runtime.temp_directory",
        "SHOW FUNCTIONS",
        "SHOW TABLES",
        "SHOW ALL",
        "SELECT * FROM runtime.partitions",
        "SELECT * FROM runtime.executors",
    ],
)
async def test_no_listing_names_it(
    runtime: Running, tmp_path_factory: pytest.TempPathFactory, sql: str
) -> None:
    runtime.api.headers["x-api-key"] = "root"
    await at_version(runtime, 1)
    answer = await runtime.sql(sql)
    assert answer.status_code == 200, answer.text
    assert "caraway_source" not in answer.text
    assert "exchange" not in answer.text
    assert str(tmp_path_factory.getbasetemp()) not in answer.text
    listed = await runtime.api.get("/v1/datasets?status=true")
    assert "caraway_source" not in listed.text


async def test_no_condition_finds_it_in_a_list_of_schemas(runtime: Running) -> None:
    runtime.api.headers["x-api-key"] = "root"
    await at_version(runtime, 1)
    within = "SELECT count(*) AS n FROM information_schema.schemata WHERE schema_name LIKE "
    assert (await runtime.sql(within + "'caraway%'")).json() == [{"n": 0}]
    assert (await runtime.sql(within + "'sales'")).json() == [{"n": 1}]
    beside = await runtime.sql("SELECT * FROM information_schema.schemata, orders")
    assert beside.status_code == 400
    assert "reads 'orders' and a list of schemas" in beside.text


async def test_view_over_it_is_an_error_of_the_view(runtime: Running) -> None:
    [view] = runtime.services.catalog.views.values()
    assert view.error is not None and "not found" in view.error.message


@pytest.mark.parametrize(
    "sql",
    ["SELECT v FROM order", "SELECT * FROM caraway_sorce.orders", "SELECT nothing FROM orders"],
)
async def test_errors_do_not_suggest_it(runtime: Running, sql: str) -> None:
    runtime.api.headers["x-api-key"] = "writer"
    await at_version(runtime, 1)
    answer = await runtime.sql(sql)
    assert answer.status_code == 400
    assert "caraway_source" not in answer.text


async def _ended(runtime: Running, query_id: str) -> dict[str, dict[str, str]]:
    state = {"status": "PENDING"}
    while state["status"] in ("PENDING", "RUNNING"):
        state = (await runtime.api.get(f"/v1/queries/{query_id}/status?wait=60")).json()
    return state  # type: ignore[return-value] # JSON
