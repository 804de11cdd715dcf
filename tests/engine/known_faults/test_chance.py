"""Conditions with random values apply where they are written, to values that are computed once."""

import asyncio

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults.memory import Asked, session_over
from tests.kit.engine import rows

EACH = 4_000
GROUPED = "SELECT k, count(*) AS n FROM many GROUP BY k"
WINDOWED = "SELECT k, count(*) OVER (PARTITION BY k) AS n FROM many"
VIEWS = {
    "grouped": GROUPED,
    "windowed": WINDOWED,
    "drawn": "SELECT random() < 0.5 AS c, count(*) AS n FROM many GROUP BY 1",
}
# Each would be false if a condition were applied elsewhere or a value computed again.
TRUE = (
    "SELECT bool_and(c) FROM (SELECT random() < 0.5 AS c FROM many GROUP BY 1) q WHERE c",
    "SELECT bool_and(c) FROM (SELECT random() < 0.5 AS c, k FROM many GROUP BY c, k) q WHERE c",
    "SELECT bool_and(c) FROM drawn WHERE c",
    "WITH q AS (SELECT random() < 0.5 AS c, count(*) FROM many GROUP BY ROLLUP (c)) "
    "SELECT bool_and(c) FROM q WHERE c",
    "SELECT bool_and(c) FROM (SELECT random() < 0.5 AS c FROM many GROUP BY random() < 0.5 "
    "HAVING random() < 0.5) q",
    "SELECT bool_and(q.c) FROM drawn q JOIN (VALUES (true)) o(c) ON q.c = o.c",
    "SELECT max(x) > 9000 FROM (SELECT row_number() OVER () AS x FROM many) q WHERE random() < 0.1",
    "SELECT count(*) < 3 FROM (SELECT DISTINCT k FROM many) q WHERE random() < 0.01",
    "SELECT count(*) < 3 FROM (SELECT k FROM many UNION SELECT k FROM many) q "
    "WHERE random() < 0.01",
    "SELECT count(DISTINCT e) > 1 AND count(*) % 100 <> 0 FROM (SELECT unnest(range(0, 100)) AS e "
    "FROM (SELECT k FROM many LIMIT 99) o) q WHERE random() < 0.49",
    "SELECT min(n) > 0 FROM (SELECT v.x, count(k) AS n FROM (VALUES (1), (2), (3)) v(x), many "
    "WHERE random() < 0.2 GROUP BY v.x) q HAVING count(*) = 3",
    "SELECT count(*) = 3 FROM (SELECT DISTINCT x FROM (VALUES (1), (2), (3)) v(x) JOIN many "
    "ON random() < 0.2) q",
    "SELECT count(*) = 3 AND bool_and(n > 99) FROM (SELECT x, count(k) AS n FROM (VALUES (1), (2), "
    "(3)) v(x) LEFT JOIN many ON random() < 0.2 GROUP BY x) q",
    "SELECT count(*) = 3 FROM (SELECT DISTINCT x FROM (many CROSS JOIN (VALUES (1), (2), (3)) v(x))"
    " WHERE random() < 0.2 AND k = 1) q",
    "SELECT max(x) > 9000 FROM (SELECT row_number() OVER () AS x, k FROM many QUALIFY "
    "row_number() OVER () > 0 AND random() < 0.1) q",
    "SELECT count(*) < 4600 FROM many WHERE floor(random() * 3) = 1",
    "SELECT count(*) = 12000 FROM many WHERE floor(random() * 3) IN (2.0, 1.0, 0.0)",
    "SELECT count(*) > 4000 FROM many WHERE extract(year FROM TIMESTAMP '2020-01-01' + CAST("
    "CAST(random() * 700 AS INT) || ' days' AS INTERVAL)) = 2020",
    "SELECT count(*) = 12000 FROM many WHERE CASE WHEN random() < 0.5 THEN k > -1 ELSE k < 9 END",
    "SELECT count(*) = 12000 FROM many WHERE CASE WHEN random() < 0.3 THEN k > -1 WHEN "
    "random() < 0.5 THEN k > -2 ELSE k < 9 END",
    "SELECT count(coalesce(x, k)) = 12000 FROM (SELECT nullif(round(random()), 0) AS x, k FROM "
    "many) q",
    "SELECT count(coalesce(k, random())) = 12000 FROM many",
)
REFUSED = (
    "SELECT coalesce(nullif(round(random()), 0), 1) FROM many",
    "SELECT k FROM many WHERE nvl(CASE WHEN random() < 0.5 THEN 1 END, 2) = 1",
    "SELECT k FROM many ORDER BY ifnull(left(uuid(), 1), '')",
)
_SOURCES = st.recursive(
    st.sampled_from([
        "grouped", "windowed", f"({GROUPED})", f"({WINDOWED})",
        f"(SELECT DISTINCT k, n FROM ({WINDOWED}) w)",
        f"({GROUPED} UNION ALL {WINDOWED})", f"({GROUPED} UNION {GROUPED})",
        f"(WITH c AS ({GROUPED}) SELECT * FROM c)", f"({WINDOWED} ORDER BY k LIMIT 9000)",
        "(SELECT o.k, g.n FROM grouped g JOIN (SELECT DISTINCT k FROM many) o ON g.k = o.k)",
    ]),
    lambda inner: st.one_of(
        inner.map("(SELECT k, n FROM {} AS q ORDER BY n, k)".format),
        inner.map("(SELECT k, n FROM {} AS q WHERE k >= 0)".format),
        inner.map("(SELECT k, max(n) AS n FROM {} AS q GROUP BY k)".format),
        inner.map("(SELECT q.k, q.n FROM {} AS q LEFT JOIN grouped g ON q.k = g.k)".format),
    ),
    max_leaves=3,
)  # fmt: skip
_CONDITIONS = st.sampled_from([
    "random() < 0.7", "q.k * 0 + random() < 0.7", "q.n * 0 + random() < 0.7",
    "NOT (random() > 0.7 AND q.k > -1)", "uuid() < 'b'", "floor(random() * 4) > 0",
    "CASE WHEN random() < 0.7 THEN q.k > -1 ELSE q.n > 9 END", "q.k > -1 AND random() < 0.7",
    "random() < 0.9 AND random() < 0.9", "(random() < 0.5 OR q.k = 1)",
])  # fmt: skip
SHAPES = st.sampled_from([
    "SELECT q.n FROM {0} AS q WHERE {1}",
    "SELECT n FROM (SELECT q.k, q.n FROM {0} AS q WHERE {1}) p",
    "SELECT q.n FROM {0} AS q JOIN (VALUES (0), (1), (2)) v(x) ON q.k = v.x WHERE {1}",
    "SELECT q.n FROM {0} AS q JOIN (VALUES (0), (1), (2)) v(x) ON q.k = v.x AND {1}",
    "SELECT q.n FROM (VALUES (0), (1), (2)) v(x), {0} AS q WHERE {1} AND q.k = v.x",
    "SELECT max(q.n) AS n FROM {0} AS q GROUP BY q.k, q.n HAVING {1}",
    "WITH q AS (SELECT * FROM {0} AS s) SELECT q.n FROM q WHERE {1}",
])  # fmt: skip
STATEMENTS = st.builds(str.format, SHAPES, _SOURCES, _CONDITIONS)


@pytest.fixture(scope="module")
def over() -> Session:
    many = pa.table({"k": pa.array([n % 3 for n in range(3 * EACH)], pa.int64())})
    return session_over({"many": many}, VIEWS)


@pytest.mark.parametrize("sql", TRUE)
async def test_what_is_true_of_each_draw(over: Session, sql: str) -> None:
    (row,) = await rows(over, sql)
    assert list(row.values()) == [True]


@pytest.mark.parametrize("sql", REFUSED)
async def test_a_value_that_would_be_computed_twice_is_refused(over: Session, sql: str) -> None:
    with pytest.raises(InvalidQueryError, match="compute the value twice"):
        await rows(over, sql)


@settings(max_examples=60, deadline=None)
@given(STATEMENTS)
def test_no_row_is_left_out_below_a_count(over: Session, sql: str) -> None:
    found = {row["n"] for row in asyncio.run(rows(over, sql))}
    assert found <= {EACH}, sql


def test_a_plain_table_is_read_by_all_cores(asked: Asked) -> None:
    assert "LIMIT" not in asked.text("SELECT k FROM many WHERE random() < 0.5 AND k = 1")
    assert "LIMIT" in asked.text("SELECT k FROM (SELECT k FROM many) q WHERE random() < 0.5")


async def test_a_join_whose_columns_are_not_known_is_refused(over: Session) -> None:
    sql = "SELECT 1 FROM many, unnest([1]) WHERE random() < 0.5"
    with pytest.raises(InvalidQueryError, match="would apply it to one side"):
        await rows(over, sql)
