"""The texts that are accepted as `refresh_sql` and `retention_sql`, and how they are stored."""

import re

import pytest

from caraway_acceleration.recipes import statements
from caraway_core.ids import TableName
from tests.kit import engine

ORDERS = TableName("orders")
TABLES = {
    "orders": engine.memory(id=[1, 2, 3], region=["eu", "us", None], day=["a", "b--", "c"]),
    "other": engine.memory(id=[1]),
}

SELECTS = {
    "SELECT * FROM orders": True,
    "select id from ORDERS where region = 'eu'": True,
    'SELECT * FROM "public"."orders" AS o WHERE o.id > 1;': True,
    "SELECT * FROM orders o WHERE o.id IS DISTINCT FROM 2 -- not the second": True,
    "SELECT * FROM orders WHERE day = 'b--' /* ; SELECT */ AND id IN (1, 2)": True,
    "SELECT * FROM orders /* a /* ' */ c */ WHERE id > 1 /* /* ) */ */": True,
    "SELECT * FROM orders /*! WHERE id > 1 */": True,
    "SELECT id AS a$b$ FROM orders": True,
    "SELECT * EXCLUDE (region) FROM orders": True,
    "SELECT extract(year FROM TIMESTAMP '2024-01-01') y, trim('x' FROM day) FROM orders": True,
    "SELECT id, ' FROM other, ' AS x FROM orders": True,
    "SELECT DISTINCT region FROM orders": False,
    "SELECT region, count(*) FROM orders GROUP BY region ORDER BY 1": False,
    "SELECT * FROM orders WHERE id > 0 LIMIT 2": False,
}


@pytest.mark.parametrize("text", SELECTS)
async def test_a_refresh_sql_can_be_put_in_parentheses(text: str) -> None:
    session = engine.session(TABLES)
    found = statements.refresh_sql(text, ORDERS)
    assert found.is_filter is SELECTS[text]
    wrapped = await engine.rows(session, f"SELECT * FROM ({found.text}) AS loaded")
    written = await engine.rows(session, text.removesuffix(";"))
    assert sorted(map(str, wrapped)) == sorted(map(str, written))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "does not begin with SELECT"),
        ("DELETE FROM orders", "does not begin with SELECT"),
        ("WITH a AS (SELECT 1) SELECT * FROM orders", "does not begin with SELECT"),
        ("FROM orders SELECT id", "does not begin with SELECT"),
        ("SELECT 1", "needs one FROM"),
        ("SELECT * FROM other", "reads 'other', not the dataset"),
        ('SELECT * FROM "ORDERS"', "reads 'ORDERS', not the dataset"),
        ("SELECT * FROM sales.orders", "reads 'sales.orders', not the dataset"),
        ("SELECT * FROM caraway.public.orders", "is not a table name"),
        ("SELECT * FROM orders.", "is not a table name"),
        ("SELECT * FROM", "names no table after FROM"),
        ("SELECT * FROM (orders)", "names no table after FROM"),
        ("SELECT * FROM orders, other", "more than one table"),
        ("SELECT * FROM orders o, other", "more than one table"),
        ("SELECT * FROM orders('x')", "more than one table"),
        ("SELECT * FROM orders NATURAL JOIN other", "holds JOIN"),
        ("SELECT * FROM orders WHERE id IN (SELECT id FROM other)", "holds SELECT"),
        ("SELECT * FROM orders WHERE id IN (FROM other)", "holds a second query"),
        ("SELECT * FROM orders UNION ALL TABLE other", "holds UNION"),
        ("SELECT * FROM orders EXCEPT SELECT 1", "holds SELECT"),
        ("SELECT * INTO x FROM orders", "holds INTO"),
        ("SELECT * FROM orders; DROP TABLE orders", "more than one statement"),
        ("SELECT (1 FROM orders", "leaves a parenthesis open"),
        ("SELECT 1) FROM orders", "closes a parenthesis"),
        ("SELECT 'x FROM orders", "holds '"),
        ("SELECT `id` FROM orders", "holds `"),
        ("SELECT * FROM orders WHERE id = $1", "holds $"),
        ("SELECT E'\\'' FROM orders", "begins with E'"),
        ("SELECT * FROM orders /* open", "a comment without an end"),
        ("SELECT * FROM orders /* a /* b */", "a comment without an end"),
        ("SELECT * FROM orders /*! , other */", "more than one table"),
        ("SELECT * FROM orders WHERE $1$ = 1 $1$", "holds $"),
        ("SELECT * FROM orders WHERE id = :a", "holds :"),
        ("SELECT X'\\'' FROM orders", "begins with X'"),
    ],
)
def test_other_statements_are_refused_as_refresh_sql(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as failed:
        statements.refresh_sql(text, ORDERS)
    assert str(failed.value).startswith("refresh_sql of 'orders' ")
    assert str(failed.value).endswith("write it as: SELECT * FROM orders WHERE ...")


def test_a_dataset_with_a_schema_is_named_with_it() -> None:
    sales = TableName("sales.orders")
    assert statements.refresh_sql("SELECT * FROM Sales . Orders", sales).is_filter
    with pytest.raises(ValueError, match="reads 'orders'"):
        statements.refresh_sql("SELECT * FROM orders", sales)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("DELETE FROM orders WHERE id < 2", [2, 3]),
        ("delete from public.orders where region = 'eu' or region = 'us';", [3]),
        ("DELETE FROM orders WHERE day = 'b--' -- all of them", [1, 3]),
        ("DELETE FROM orders WHERE /* WHERE */ orders.id IS DISTINCT FROM 1", [1]),
        ("DELETE /* /* */ WHERE */ FROM orders WHERE id < 3 /* ) /* */ */;", [3]),
    ],
)
async def test_a_retention_sql_is_a_condition_in_parentheses(text: str, left: list[int]) -> None:
    condition = statements.retention_sql(text, ORDERS).condition
    sql = f"SELECT id FROM orders WHERE ({condition}) IS NOT TRUE ORDER BY id"
    found = await engine.rows(engine.session(TABLES), sql)
    assert [row["id"] for row in found] == left


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT * FROM orders", "does not begin with DELETE FROM"),
        ("DELETE orders WHERE id = 1", "does not begin with DELETE FROM"),
        ("DELETE FROM other WHERE id = 1", "reads 'other', not the dataset"),
        ("DELETE FROM orders", "has no WHERE"),
        ("DELETE FROM orders o WHERE o.id = 1", "has no WHERE"),
        ("DELETE FROM orders USING other WHERE true", "has no WHERE"),
        ("DELETE FROM orders WHERE ;", "has nothing after WHERE"),
        ("DELETE FROM orders WHERE id = 1 LIMIT 1", "has more than a condition"),
        ("DELETE FROM orders WHERE id = 1 RETURNING *", "holds RETURNING"),
        ("DELETE FROM orders WHERE id IN (SELECT id FROM other)", "holds SELECT"),
        ("DELETE FROM orders WHERE id = 1) OR (true", "closes a parenthesis"),
    ],
)
def test_other_statements_are_refused_as_retention_sql(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as failed:
        statements.retention_sql(text, ORDERS)
    assert str(failed.value).startswith("retention_sql of 'orders' ")
