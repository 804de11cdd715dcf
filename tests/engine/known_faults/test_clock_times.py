"""Times of day are compared whatever their precision is."""

from itertools import product

import duckdb
import pytest

from tests.engine.known_faults import tables
from tests.engine.known_faults.memory import Asked

# DuckDB has microseconds alone, as has the column.
VALUES = ("tod", "CAST(day AS TIME)", "day::TIME", "TIME '14:00'", "TRY_CAST('10:00:00' AS TIME)")
FORMS = (
    "SELECT id FROM clock WHERE {0} = {1}",
    "SELECT id FROM clock WHERE {0} IS DISTINCT FROM {1} OR {0} < {1}",
    "SELECT id FROM clock WHERE {0} NOT IN ({1}, TIME '23:00')",
    "SELECT id FROM clock WHERE {0} BETWEEN TIME '09:00' AND {1}",
    "SELECT id, coalesce({0}, {1}), nullif({0}, {1}) FROM clock",
    "SELECT id, CASE WHEN id > 2 THEN {0} ELSE {1} END, greatest({0}, {1}) FROM clock",
    "SELECT id, CASE {0} WHEN {1} THEN 1 END FROM clock",
    "SELECT {0} AS x FROM clock UNION SELECT {1} FROM clock",
    "SELECT a.id, b.id FROM clock a JOIN (SELECT id, {1} AS x FROM clock) b ON a.tod = b.x",
    "SELECT id FROM clock WHERE {0} IN (SELECT {1} FROM clock WHERE id <> 2)",
    "SELECT {0} AS x, max({1}) FROM clock GROUP BY {0} HAVING max({1}) >= TIME '00:00'",
    "SELECT id, lag({0}) OVER (ORDER BY id) = {1} FROM clock",
    "WITH c AS (SELECT id, {0} AS x, {1} AS y FROM clock) SELECT id FROM c WHERE x <> y",
)


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("given", tables.tables()["clock"])
    connection.execute("CREATE TABLE clock AS FROM given")
    return connection


@pytest.mark.parametrize("form", FORMS)
def test_every_pair_of_times(asked: Asked, duck: duckdb.DuckDBPyConnection, form: str) -> None:
    for pair in product(VALUES, repeat=2):
        sql = form.format(*pair)
        assert asked.mended(sql) == sorted(duck.sql(sql).fetchall(), key=str), sql


def test_nanoseconds_stay_where_all_columns_have_them(asked: Asked) -> None:
    nanoseconds = "(SELECT id, exact FROM clock) q"
    asked.context.register_view("exactly", asked.context.sql(f"SELECT * FROM {nanoseconds}"))
    sql = "SELECT id FROM exactly WHERE exact = TIME '10:00'"
    assert asked.mended(sql) == [(2,)]
    assert asked.text(sql) == sql


@pytest.mark.parametrize(
    "sql",
    ["SELECT id AS time FROM clock", "SELECT now() AS TIME, '1'::TIMESTAMP IS NULL FROM clock"],
)
def test_other_times_stay(asked: Asked, sql: str) -> None:
    assert "Microsecond" not in asked.text(sql)


def test_columns_keep_their_names(asked: Asked) -> None:
    plain = asked.context.sql("SELECT CAST(day AS TIME), max(tod) FROM clock GROUP BY day")
    sql = asked.text("SELECT CAST(day AS TIME), max(tod) FROM clock GROUP BY day")
    assert asked.context.sql(sql).schema().names == plain.schema().names


def test_text_that_is_no_sql_stays(asked: Asked) -> None:
    with pytest.raises(Exception, match="Expected"):
        asked.text("SELECT TIME '10:00' FROM")
