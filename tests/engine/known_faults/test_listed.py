"""Lists of a table are unnested in FROM."""

import duckdb
import pytest

from caraway_engine.known_faults import listed
from caraway_engine.known_faults.expression_types import Types
from tests.engine.known_faults import tables
from tests.engine.known_faults.memory import Asked

SAME = (
    "SELECT x FROM lists CROSS JOIN unnest(lists.e) AS q(x)",
    "SELECT q.x, id FROM lists AS l, unnest(l.e) AS q(x) WHERE q.x > 1 OR l.id = 1",
    "SELECT * FROM lists, unnest(e) AS q(x)",
    "SELECT lists.*, q.x FROM lists, unnest(e) AS q(x)",
    "SELECT l.*, x, y FROM lists l, unnest(l.e) AS q(x), unnest(l.s) AS w(y)",
    "SELECT x FROM lists JOIN unnest(e) AS q(x) ON true",
    "SELECT x, t.v FROM lists l JOIN t ON t.k = l.id CROSS JOIN unnest(l.e) AS q(x)",
    "SELECT x, t.v FROM lists l CROSS JOIN unnest(l.e) AS q(x) JOIN t ON t.k = q.x",
    "SELECT x, t.v FROM lists l LEFT JOIN t ON t.k = l.id CROSS JOIN unnest(l.e) AS q(x)",
    "SELECT x, t.v FROM t JOIN lists l ON t.k = l.id CROSS JOIN unnest(l.e) AS q(x)",
    "SELECT x, count(*) AS n FROM lists, unnest(e) AS q(x) GROUP BY x HAVING count(*) > 1",
    "SELECT id, sum(q.x) OVER (ORDER BY id) AS s FROM lists, unnest(e) AS q(x)",
    "SELECT x FROM (SELECT e AS list FROM lists WHERE id > 1) l, unnest(l.list) AS q(x)",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM lists l, unnest(l.e) AS q(x) WHERE x = t.k)",
    "SELECT k FROM t WHERE k IN (SELECT x FROM lists, unnest(e) AS q(x))",
    "WITH c AS (SELECT id, x FROM lists, unnest(e) AS q(x)) SELECT max(x), id FROM c GROUP BY id",
    "SELECT x FROM lists, unnest(e) AS q(x) UNION ALL SELECT id FROM lists",
    'SELECT "A b" FROM lists, unnest(e) AS "Q"("A b") WHERE "Q"."A b" = 2',
    "SELECT x FROM lists l, unnest(list_slice(l.e, 1, 1)) AS q(x)",
    "SELECT x, id FROM lists, unnest([1, 2]) AS q(x)",
)  # fmt: skip
REFUSED = (
    "SELECT x FROM t LEFT JOIN lists l ON t.k = l.id CROSS JOIN unnest(l.e) AS q(x)",
    "SELECT x FROM lists l RIGHT JOIN t ON t.k = l.id CROSS JOIN unnest(l.e) AS q(x)",
    "SELECT x FROM lists l LEFT JOIN unnest(l.e) AS q(x) ON true",
    "SELECT x FROM lists l JOIN unnest(l.e) AS q(x) ON x = l.id",
    "SELECT * FROM lists l JOIN t ON t.k = l.id CROSS JOIN unnest(l.e) AS q(x)",
    "SELECT q.id FROM lists l, unnest(l.e) AS q(id)",
    "SELECT q.* FROM lists l, unnest(l.e) AS q(x)",
)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name in ("lists", "t"):
        connection.register(f"of_{name}", tables.tables()[name])
        connection.execute(f"CREATE TABLE {name} AS FROM of_{name}")
    return connection


@pytest.mark.parametrize("sql", SAME)
def test_the_rows_are_those_of_duckdb(
    asked: Asked, duck: duckdb.DuckDBPyConnection, sql: str
) -> None:
    theirs = duck.sql(sql.replace("list_slice(l.e, 1, 1)", "l.e[1:1]"))
    assert asked.mended(sql) == sorted(theirs.fetchall(), key=str)
    names = asked.context.sql(asked.text(sql)).schema().names
    assert len(names) == len(theirs.columns)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_would_mean_something_else_stays_an_error(asked: Asked, sql: str) -> None:
    assert asked.text(sql) == sql
    with pytest.raises(Exception, match=r"OuterReferenceColumn|not implemented"):
        asked.mended(sql)


def test_names_of_columns_stay(asked: Asked) -> None:
    sql = asked.text("SELECT q.x, lists.id AS i FROM lists, unnest(e) AS q(x) ORDER BY q.x")
    assert asked.context.sql(sql).schema().names == ["x", "i"]


@pytest.mark.parametrize(
    "sql",
    ["SELECT CAST(e AS BIGINT[]) FROM lists", "CREATE TABLE x (y VARCHAR[])", "SELECT 1 AS n"],
)
def test_types_of_lists_are_no_lists(asked: Asked, sql: str) -> None:
    assert listed.called(sql, Types(asked.context)) is None


def test_only_lists_become_calls(asked: Asked) -> None:
    sql = "SELECT CAST([id, 2] AS BIGINT[3]) AS x FROM lists"
    assert listed.called(sql, Types(asked.context)) == (
        "SELECT CAST(make_array(id, 2) AS BIGINT[3]) AS x FROM lists"
    )
