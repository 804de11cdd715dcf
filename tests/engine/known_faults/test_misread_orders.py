"""Running values and times are sorted where they are said to be."""

import asyncio
import datetime as dt
from random import Random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import misread_orders
from caraway_engine.sessions.sessions import Session
from tests.engine.known_faults.memory import Asked, session_over
from tests.kit.engine import rows

_CHANCE = Random(1)
_FIRST = dt.datetime(2024, 1, 1)
ROWS = pa.table({
    "id": pa.array(range(40), pa.int64()),
    "g": pa.array([_CHANCE.choice([0, 1, None]) for _ in range(40)], pa.int64()),
    "m": pa.array([None, None, *(_CHANCE.choice([None, 1, 2, 9, -4]) for _ in range(38))],
                  pa.int64()),
    "u": pa.array([_CHANCE.choice([0, 1, 5]) for _ in range(40)], pa.uint64()),
    "moment": pa.array([_FIRST + dt.timedelta(hours=7 * n) for n in range(40)], pa.timestamp("us")),
})  # fmt: skip
_FUNCTIONS = st.sampled_from(
    ["count(*)", "count(m)", "max(id)", "min(id)", "max(m)", "min(m)", "sum(u)", "sum(m)"]
)
_PARTITIONS = st.sampled_from(["", "PARTITION BY g ", "PARTITION BY g, u "])
_ORDERS = st.sampled_from(
    ["ORDER BY id", "ORDER BY id DESC", "ORDER BY m, id", "ORDER BY m DESC NULLS LAST, id"]
)
_FRAMES = st.sampled_from([
    "", "ROWS 2 PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
])  # fmt: skip
_RUNNING = st.builds("{} OVER ({}{} {})".format, _FUNCTIONS, _PARTITIONS, _ORDERS, _FRAMES)
_DIRECTIONS = st.builds(
    "{} NULLS {}".format, st.sampled_from(["ASC", "DESC"]), st.sampled_from(["FIRST", "LAST"])
)
SHAPES = st.sampled_from([
    "SELECT {0} AS x FROM sorted ORDER BY x {1}",
    "SELECT x FROM (SELECT {0} AS x FROM sorted) q ORDER BY x {1} LIMIT 5",
    "SELECT x, rank() OVER (ORDER BY x {1}) AS r FROM (SELECT {0} AS x FROM sorted) q "
    "ORDER BY x {1}",
    "SELECT x, count(*) AS n FROM (SELECT {0} AS x FROM sorted) q GROUP BY x ORDER BY x {1}",
    "SELECT q.x FROM sorted t JOIN (SELECT id, {0} AS x FROM sorted) q "
    "ON t.id = q.id ORDER BY q.x {1} LIMIT 7",
])  # fmt: skip


@pytest.fixture(scope="module")
def made() -> Session:
    return session_over(
        {"t": ROWS}, {"sorted": "SELECT * FROM (SELECT * FROM t ORDER BY moment LIMIT 1000) q"}
    )


@settings(max_examples=150)
@given(shape=SHAPES, value=_RUNNING, direction=_DIRECTIONS)
def test_rows_are_sorted(made: Session, shape: str, value: str, direction: str) -> None:
    sql = shape.format(value, direction)
    sorted = ROWS  # noqa: F841 # read by name
    expected = duckdb.sql(sql).to_arrow_table().to_pylist()
    assert asyncio.run(rows(made, sql)) == expected


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(moment AS TIME) AS x FROM sorted ORDER BY x {0}",
        "SELECT x FROM (SELECT CAST(moment AS TIME) AS x FROM sorted) q ORDER BY x {0} LIMIT 5",
        "SELECT x, count(*) AS n FROM (SELECT CAST(moment AS TIME) AS x FROM sorted) q GROUP BY x "
        "ORDER BY x {0}",
    ],
)
async def test_times_are_sorted(made: Session, sql: str, direction: str) -> None:
    sorted = ROWS  # noqa: F841 # read by name
    expected = duckdb.sql(sql.format(direction)).to_arrow_table().to_pylist()
    assert await rows(made, sql.format(direction)) == expected


async def test_a_running_count_still_ends_a_sort(made: Session) -> None:
    sql = "EXPLAIN SELECT count(*) OVER (ORDER BY id) AS n FROM t ORDER BY n"
    text = "\n".join(str(each["plan"]) for each in await rows(made, sql))
    assert text.count("SortExec") == 1


@pytest.mark.parametrize(
    "call",
    [
        "count(v ORDER BY k)", "count(DISTINCT v ORDER BY v)", "sum(v + 1 ORDER BY k DESC)",
        "avg(v ORDER BY k NULLS FIRST, v)", "max(abs(v) ORDER BY k)", "stddev(v ORDER BY k)",
        "var_pop(v ORDER BY k)", "bit_xor(v ORDER BY k)", "bool_and(v > 1 ORDER BY k)",
        "median(v ORDER BY k)", "corr(v, k ORDER BY k)", "regr_slope(v, k ORDER BY k)",
        "count(v ORDER BY k) FILTER (WHERE k > 1)", "approx_distinct(v ORDER BY k)",
    ],
)  # fmt: skip
def test_it_changes_nothing(asked: Asked, call: str) -> None:
    plain, place = call, call.index(" ORDER BY")
    end = call.index(")", place)
    plain = call[:place] + call[end:]
    for form in ("SELECT {} FROM t", "SELECT k, {} FROM t GROUP BY k"):
        assert asked.mended(form.format(call)) == asked.engine(form.format(plain))


def test_others_keep_their_order(asked: Asked) -> None:
    sql = "SELECT array_agg(v ORDER BY v DESC), first_value(v ORDER BY v DESC) FROM t"
    assert asked.text(sql) == sql


@pytest.mark.parametrize(
    ("words", "is_so"),
    [
        ("select k, count(*) from t group by k order by count(v)", False),
        ("select count(*) from (select k from t order by k) q", False),
        ("select count(abs(v) order by k) from t", True),
        ("select stddev (v order\nby k) from t", True),
    ],
)
def test_most_statements_are_not_parsed_for_it(words: str, is_so: bool) -> None:
    assert misread_orders.may_order_aggregates(words) is is_so
