"""Plans of DataFusion that may have lost a part are refused; each loss is shown to exist."""

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.statements import Statement
from caraway_engine.sessions.sessions import Session
from tests.kit import client_plans, engine
from tests.kit.client_plans import Handwritten, read

NAMED = Statement("-- a plan", {})
ROWS = {"k": pa.array([1, 2, None, 2]), "v": pa.array([3, None, 5, 6])}
PAIRS = [
    (
        "SELECT sum(v) OVER (ORDER BY k::double RANGE BETWEEN 1.5 PRECEDING AND CURRENT ROW) AS a "
        "FROM t",
        "SELECT sum(v) OVER (ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS a "
        "FROM t",
        "window function 'sum'",
    ),
    (
        "SELECT lag(v) IGNORE NULLS OVER (ORDER BY k) AS a FROM t",
        "SELECT lag(v) OVER (ORDER BY k) AS a FROM t",
        "window function 'lag'",
    ),
    (
        "SELECT count(v) FILTER (WHERE v > 4) OVER (PARTITION BY k) AS a FROM t",
        "SELECT count(v) OVER (PARTITION BY k) AS a FROM t",
        "window function 'count'",
    ),
    (
        "SELECT k FROM t WHERE k NOT IN (SELECT v FROM t)",
        "SELECT k FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM t AS b WHERE a.k = b.v)",
        "anti join",
    ),
    (
        "SELECT k FROM t INTERSECT ALL SELECT v FROM t",
        "SELECT t.k FROM t LEFT SEMI JOIN t AS u ON t.k IS NOT DISTINCT FROM u.v",
        "INTERSECT ALL",
    ),
]


@pytest.fixture(scope="module")
def session() -> Session:
    return engine.session({"t": engine.memory(**ROWS)})


@pytest.mark.parametrize(("sql", "other", "said"), PAIRS)
def test_both_statements_of_a_loss_are_refused(
    sql: str, other: str, said: str, session: Session
) -> None:
    for each in (sql, other):
        encoded = client_plans.produced(each, {"t": pa.table(ROWS)})
        with pytest.raises(InvalidQueryError, match=said):
            session.sql_of(NAMED, encoded)


def test_plans_of_duckdb_are_refused(session: Session) -> None:
    encoded = Handwritten(producer="DuckDB").plan(read("t", k="i64"), "k")
    with pytest.raises(InvalidQueryError, match="a plan of DuckDB"):
        session.sql_of(NAMED, encoded)


def test_an_anti_join_of_columns_that_are_never_null_has_lost_nothing(session: Session) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False)])
    rows = {"t": pa.table({"k": pa.array([1, 2])}, schema=schema)}
    sql = "SELECT k FROM t WHERE k NOT IN (SELECT k FROM t AS u)"
    assert "ANTI JOIN" in session.sql_of(NAMED, client_plans.produced(sql, rows))
