"""Tables of source catalogs: found by names of three parts, and followed at their source."""

from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_core.statements.questions import SqlQuestion
from caraway_scheduler.queries.requests import QueryRequest
from caraway_serving import spans
from caraway_serving.access import ANONYMOUS
from tests.kit import client_plans
from tests.kit.deadlines import eventually
from tests.kit.duckdb_files import run
from tests.kit.runtime import Running, running

MANIFEST = """
catalogs:
  - {from: duckdb, name: shop, params: {duckdb_open: shop.duckdb}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "shop.duckdb"
    run(
        made,
        "CREATE TABLE orders AS SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t (id, who)",
        'CREATE SCHEMA "Back Office"',
        'CREATE TABLE "Back Office"."Select" AS SELECT 7 AS "Group", 8 AS "order"',
        "CREATE VIEW late AS SELECT id FROM orders WHERE id > 1",
    )
    return made


async def rows(runtime: Running, sql: str) -> Any:
    answer = await runtime.sql(sql)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(runtime: Running, sql: str, status: int = 400) -> str:
    answer = await runtime.sql(sql)
    assert answer.status_code == status, answer.text
    return str(answer.text)


async def test_a_statement_names_a_table_by_three_parts(file: Path) -> None:
    async with running(file.parent, MANIFEST) as runtime:
        found = await rows(runtime, "SELECT who FROM shop.main.orders WHERE id = 2")
        assert found == [{"who": "b"}]
        assert await rows(runtime, "SELECT * FROM shop.main.late") == [{"id": 2}]
        sql = 'SELECT shop.main.orders.id FROM "shop"."main"."orders" ORDER BY 1'
        assert await rows(runtime, sql) == [{"id": 1}, {"id": 2}]


async def test_names_in_quotes_and_reserved_words(file: Path) -> None:
    async with running(file.parent, MANIFEST) as runtime:
        sql = 'SELECT "Group" + "order" AS n FROM shop."Back Office"."Select"'
        assert await rows(runtime, sql) == [{"n": 15}]
        error = await refused(runtime, "SELECT 1 FROM shop.main.order")
        assert "did you mean 'shop.main.orders'?" in error
        error = await refused(runtime, "SELECT 1 FROM shop.mian.orders")
        assert "catalog 'shop' has no schema 'mian'; did you mean 'main'?" in error
        error = await refused(runtime, 'SELECT 1 FROM shop."Back Office".select_')
        assert """'shop.Back Office.Select'? Names with capitals need double quotes.""" in error
        assert "table 'shp.main.orders' not found" in await refused(
            runtime, "SELECT 1 FROM shp.main.orders"
        )


async def test_tables_follow_their_source(file: Path) -> None:
    async with running(file.parent, MANIFEST) as runtime:
        await rows(runtime, "SELECT who FROM shop.main.orders")
        run(file, "CREATE TABLE new AS SELECT 1 AS a", "ALTER TABLE orders ADD COLUMN n INT")
        assert await rows(runtime, "SELECT a FROM shop.main.new") == [{"a": 1}]

        async def has_column() -> bool:
            answer = await runtime.sql("SELECT n FROM shop.main.orders WHERE id = 1")
            return bool(answer.status_code == 200)

        await eventually(has_column, "the new column is there")
        run(file, "DROP VIEW late", "DROP TABLE orders")

        async def is_gone() -> bool:
            answer = await runtime.sql("SELECT id FROM shop.main.orders")
            return "not found" in answer.text

        await eventually(is_gone, "the table that was dropped is gone")


async def test_a_source_that_is_away_comes_back(file: Path) -> None:
    hidden = file.rename(file.with_name("hidden"))
    with_view = (
        MANIFEST
        + """
datasets:
  - {from: "file:a.csv", name: a}
views:
  - {name: both, sql: SELECT a FROM a JOIN shop.main.orders ON a = id}
"""
    )
    (file.parent / "a.csv").write_text("a\n1\n")
    async with running(file.parent, with_view) as runtime:
        assert await rows(runtime, "SELECT a FROM a") == [{"a": 1}]
        error = await refused(runtime, "SELECT id FROM shop.main.orders", 503)
        assert "catalog 'shop': the file of params.duckdb_open does not exist" in error
        assert str(file.parent) not in error
        error = await refused(runtime, "SELECT a FROM both", 503)
        assert "view 'both': catalog 'shop', which it reads, is in the error state" in error
        hidden.rename(file)

        async def is_back() -> bool:
            answer = await runtime.sql("SELECT id FROM shop.main.orders WHERE id = 1")
            return bool(answer.status_code == 200)

        await eventually(is_back, "the catalog is listed")
        assert await rows(runtime, "SELECT a FROM both") == [{"a": 1}]


@pytest.mark.parametrize("include", ["main.*", "*.orders"])
async def test_include_limits_what_can_be_named(file: Path, include: str) -> None:
    limited = MANIFEST.replace("name: shop", f"name: shop, include: ['{include}']")
    async with running(file.parent, limited) as runtime:
        assert len(await rows(runtime, "SELECT id FROM shop.main.orders")) == 2
        error = await refused(runtime, 'SELECT 1 FROM shop."Back Office"."Select"')
        assert "no schema 'Back Office'" in error


async def test_names_of_a_source_are_neither_sql_nor_secrets(file: Path) -> None:
    """A name that has a quote or a dot is left out; references to secrets stay as they are."""
    names = ["${secrets:KEY}", "x; DROP TABLE orders --", "a.b", 'q"q', "über"]
    run(file, *(f'CREATE TABLE "{each.replace(chr(34), chr(34) * 2)}" AS SELECT 1 AS n'
                for each in names))  # fmt: skip
    async with running(file.parent, MANIFEST, {"KEY": "hidden"}) as runtime:
        for each in (names[0], names[1], names[4]):
            assert await rows(runtime, f'SELECT n FROM shop.main."{each}"') == [{"n": 1}]
        for each in (names[2], names[3].replace('"', '""')):
            error = await refused(runtime, f'SELECT n FROM shop.main."{each}"')
            assert "not found" in error
        assert "hidden" not in await refused(runtime, 'SELECT x FROM shop.main."${secrets:KEY}"')
        assert len(await rows(runtime, "SELECT id FROM shop.main.orders")) == 2


async def test_views_functions_and_plans_read_tables(file: Path) -> None:
    manifest = """
runtime: {functions: {enabled: true}}
catalogs:
  - {from: duckdb, name: shop, params: {duckdb_open: shop.duckdb}}
datasets:
  - {from: "file:a.csv", name: shop.main}
views:
  - {name: plain, sql: SELECT id FROM shop.main.orders WHERE id > 1}
  - {name: kept, sql: SELECT who FROM shop.main.orders, acceleration: {enabled: true}}
functions:
  - name: found
    from: sql
    kind: table
    signature: {args: [], returns: [{name: id, type: bigint}]}
    body: SELECT id FROM shop.main.late
"""
    (file.parent / "a.csv").write_text("a\n1\n")
    async with running(file.parent, manifest) as runtime:
        assert await rows(runtime, "SELECT id FROM plain") == [{"id": 2}]
        assert await rows(runtime, "SELECT id FROM found()") == [{"id": 2}]
        # A dataset with the name of a schema of the catalog is another table.
        assert await rows(runtime, "SELECT shop.main.a FROM shop.main") == [{"a": 1}]

        async def is_kept() -> bool:
            answer = await runtime.sql("SELECT count(*) AS n FROM kept")
            return bool(answer.status_code == 200 and answer.json() == [{"n": 2}])

        await eventually(is_kept, "the accelerated view is loaded")
        plan = client_plans.plan(client_plans.read("shop.main.orders", id="i32"), "id")
        sql = await runtime.services.dispatch.ask(SqlQuestion(Statement("", {}), plan))
        assert len(await rows(runtime, sql)) == 2


async def test_a_limited_statement_has_no_other_table_described(file: Path) -> None:
    async with running(file.parent, MANIFEST) as runtime:
        readable = frozenset({TableName("shop.main.orders")})
        (state,) = runtime.services.catalog.source_catalogs.states.values()

        async def run_limited(sql: str) -> None:
            request = QueryRequest(sql, ANONYMOUS, spans.start(None), readable=readable)
            answer = await runtime.services.queries.start(request)
            answer.rows.close()

        await run_limited("SELECT id FROM shop.main.orders")
        for hidden in ("shop.main.late", "shop.main.nothing"):
            with pytest.raises(TableNotFoundError) as caught:
                await run_limited(f"SELECT id FROM shop.main.orders, {hidden}")
            assert "Back Office" not in caught.value.message
        assert set(state.described) == readable


async def test_answers_are_kept_until_the_columns_change(file: Path) -> None:
    async with running(file.parent, MANIFEST) as runtime:
        sql = "SELECT * FROM shop.main.orders WHERE id = 1"
        await rows(runtime, sql)
        run(file, "ALTER TABLE orders ADD COLUMN n INT")

        async def has_column() -> bool:
            return bool("n" in (await rows(runtime, sql))[0])

        await eventually(has_column, "the answer has the new column")
