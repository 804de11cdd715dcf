"""A statement with parameters has the same answer as with constants in their place."""

import asyncio
import datetime
import decimal
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

T = memory(
    s=["a", "b", "a"],
    i=pa.array([1, 2, 3], pa.int32()),
    f=[1.5, 2.5, 3.5],
    d=pa.array([0, 1, 2], pa.date32()),
)
EMPTY = memory(w=pa.array([], pa.float64()), n=pa.array([], pa.int64()))


@pytest.fixture(scope="module")
def of() -> Session:
    return session({"t": T})


def written(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def with_constants(sql: str, values: tuple[Any, ...]) -> str:
    pieces = sql.split("?")
    assert len(pieces) == len(values) + 1
    return "".join(
        piece + written(value) for piece, value in zip(pieces, (*values, ""), strict=True)
    )[:-2]


async def answer(of: Session, sql: str, parameters: Mapping[str, Any]) -> Any:
    try:
        found = await rows(of, sql, parameters=parameters)
    except QueryError as exc:
        return type(exc)
    return sorted(map(repr, (tuple(row.values()) for row in found)))


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT sum(CASE WHEN s = ? THEN ? ELSE ? END) FROM t", ("a", 1, 0)),
        ("SELECT sum(CASE WHEN s = ? THEN ? ELSE ? END) FROM t", ("a", 1, 2.5)),
        ("SELECT sum(?) FROM t", (2,)),
        ("SELECT s, sum(?) FROM t GROUP BY ROLLUP(s)", (2,)),
        ("SELECT sum(?) OVER (PARTITION BY s) FROM t", (2,)),
        ("SELECT sum(-?), sum(coalesce(?, ?)) FROM t", (1, 2, 3)),
        ("SELECT ? || ?", ("a", "b")),
        ("SELECT ? || ? || s FROM t WHERE s = ?", ("a", "b", "a")),
        ("SELECT d + ? FROM t", (1,)),
        ("SELECT d - ? FROM t", ("1970-01-01",)),
        ("VALUES (?), (?)", (1, 2.5)),
        ("VALUES (1), (?)", (2.5,)),
        ("VALUES (?), (1)", (2.5,)),
        ("VALUES (1), (?)", (True,)),
        ("VALUES ('a'), (?)", (5,)),
        ("SELECT a + 1 FROM (VALUES (1), (?)) v(a)", (2.5,)),
        ("SELECT sum(a) FROM (VALUES (?), (?)) v(a)", (1, 2)),
        ("SELECT sum(x) FROM (SELECT ? AS x)", (1,)),
        ("SELECT sum(x) FROM (SELECT ? AS x UNION ALL SELECT ?)", (1, 1)),
        ("SELECT ? UNION ALL SELECT i FROM t", ("x",)),
        ("SELECT i FROM t EXCEPT SELECT ?", (1,)),
        ("WITH r AS (SELECT ? AS n) SELECT n, sum(n) FROM r GROUP BY n", (3,)),
        (
            "WITH RECURSIVE r AS (SELECT ? AS n UNION ALL SELECT n + 1 FROM r WHERE n < ?) "
            "SELECT * FROM r",
            (1, 3),
        ),
        ("SELECT i FROM t WHERE (i, s) IN ((?, ?)) UNION ALL SELECT 7", (1, "a")),
        ("SELECT i FROM t WHERE (i, s) IN ((?, ?), (2, ?))", (1, "a", "b")),
        ("SELECT i FROM t WHERE i = ? AND d > ? AND f BETWEEN ? AND ?", ("3", "1970-01-01", 1, 4)),
        ("SELECT i FROM t ORDER BY i LIMIT ? OFFSET ?", (1, 1)),
        ("SELECT * FROM generate_series(?, ?)", (1, 3)),
        ("SELECT * FROM range(?)", (2,)),
        ("SELECT * FROM generate_series(3, ?, ?)", (-3, -2)),
        ("SELECT count(*) FROM t, generate_series(1, ?) WHERE s = ?", (2, "a")),
        ("SELECT date_part(?, d) FROM t", ("day",)),
        ("SELECT date_part(?, d) FROM t WHERE i = ?", ("day'; --", 1)),
        ("SELECT INTERVAL ?", ("1 day",)),
        ("SELECT arrow_cast(i, ?) FROM t", ("Int8",)),
        ("SELECT sum(i) OVER (ORDER BY i ROWS ? PRECEDING) FROM t", (1,)),
        ("SELECT sum(?) FROM t", ("x",)),
        ("SELECT ? FROM nowhere", (1,)),
    ],
)
async def test_parameter_means_what_a_constant_means(
    of: Session, sql: str, values: tuple[Any, ...]
) -> None:
    parameters = {str(place): value for place, value in enumerate(values, start=1)}
    expected = await answer(of, with_constants(sql, values), {})
    assert await answer(of, sql, parameters) == expected


SCALARS = st.sampled_from(
    ["?", "i", "f", "s", "1", "2.5", "'1'", "? + ?", "? || s", "coalesce(i, ?)"]
)
WRAPPED = st.sampled_from(
    ["{0}", "-({0})", "({0}) + ({1})", "({0}) || ({1})", "CASE WHEN i = 1 THEN {0} ELSE {1} END",
     "nullif({0}, {1})", "greatest({0}, {1})", "coalesce({0}, {1})"]
)  # fmt: skip
STATEMENTS = st.sampled_from(
    ["SELECT {0} FROM t", "SELECT sum({0}) FROM t", "SELECT s, max({0}) FROM t GROUP BY s",
     "SELECT {0} FROM t UNION SELECT {1} FROM t", "SELECT i FROM t WHERE {0} = {1}",
     "SELECT x FROM (SELECT {0} AS x FROM t) WHERE x > {2}",
     "SELECT a.i FROM t a JOIN (SELECT i, {0} AS k FROM t) b ON a.f > b.k",
     "SELECT count(*) FROM t WHERE f IN ({2}, {2})",
     "SELECT min(c) FROM (VALUES ({2}), ({2})) v(c)",
     "SELECT sum(x) OVER (ORDER BY i) FROM (SELECT i, {0} AS x FROM t)"]
)  # fmt: skip
CONSTANTS = st.sampled_from(["?", "1", "2.5", "'1'"])
VALUES = st.sampled_from([1, 3, 2.5, "1", "a", True])


@settings(max_examples=150, deadline=None)
@given(
    STATEMENTS,
    st.lists(WRAPPED, min_size=2, max_size=2),
    st.lists(SCALARS, min_size=4, max_size=4),
    CONSTANTS,
    st.lists(VALUES, min_size=24, max_size=24),
)
def test_generated_parameters_mean_what_constants_mean(
    of: Session, statement: str, wraps: list[str], scalars: list[str], one: str, values: list[Any]
) -> None:
    sql = statement.format(wraps[0].format(*scalars[:2]), wraps[1].format(*scalars[2:]), one)
    given = tuple(values[: sql.count("?")])
    parameters = {str(place): value for place, value in enumerate(given, start=1)}

    async def both() -> tuple[Any, Any]:
        expected = await answer(of, with_constants(sql, given), {})
        return await answer(of, sql, parameters), expected

    found, expected = asyncio.run(both())
    assert found == expected, sql


@pytest.mark.parametrize(
    "array",
    [
        pa.array([7], pa.int8()),
        pa.array([7], pa.uint64()),
        pa.array([7], pa.float32()),
        pa.array([7], pa.date32()),
        pa.array([7], pa.date64()),
        pa.array([7], pa.time32("s")),
        pa.array([7], pa.time64("us")),
        pa.array([7], pa.duration("ms")),
        pa.array([7], pa.timestamp("ms")),
        pa.array([7], pa.timestamp("us", "+02:00")),
        pa.array([7], pa.timestamp("ns", "UTC")),
        pa.array([decimal.Decimal("7.50")], pa.decimal128(12, 2)),
        pa.array([decimal.Decimal("7.50")], pa.decimal256(50, 2)),
        pa.array([b"x"], pa.binary()),
        pa.array([b"x"], pa.large_binary()),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([[7]], pa.list_(pa.int64())),
        pa.array([None], pa.int16()),
    ],
    ids=lambda each: str(each.type),
)
async def test_value_keeps_its_type_in_values_and_unions(of: Session, array: pa.Array) -> None:
    for sql in (
        "SELECT DISTINCT arrow_typeof(column1) AS t FROM (VALUES ($v), ($v)) x",
        "SELECT arrow_typeof(x) AS t FROM (SELECT $v AS x UNION SELECT $v)",
    ):
        value = ArrowValue.from_array(array)
        plain = await rows(of, "SELECT arrow_typeof($v) AS t", parameters={"v": value})
        assert await rows(of, sql, parameters={"v": value}) == plain


async def test_null_has_no_type_of_its_own(of: Session) -> None:
    sql = "SELECT sum(CASE WHEN s = $1 THEN $2 ELSE $3 END) AS n FROM t"
    assert await rows(of, sql, parameters={"1": "a", "2": 1, "3": None}) == [{"n": 2}]
    typed = ArrowValue.from_array(pa.array([None], pa.int64()))
    assert await rows(of, "SELECT sum($1) AS n FROM t", parameters={"1": typed}) == [{"n": None}]
    with pytest.raises(QueryError):
        await rows(of, "SELECT sum($1) AS n FROM t", parameters={"1": None})


async def test_column_keeps_the_name_that_the_placeholder_gives_it(of: Session) -> None:
    found = await rows(of, "SELECT ? UNION SELECT 1", parameters={"1": 1})
    assert found == [{"$1": 1}]


async def test_inserted_values_have_their_types() -> None:
    made = session({"e": EMPTY})
    options = {"writable": frozenset({TableName("e")}), "may_write": True}
    sql = "INSERT INTO e (w, n) VALUES (1, 1), (?, ?), (?, NULL)"
    await rows(made, sql, parameters={"1": 2.5, "2": 2, "3": datetime.date.max.year}, **options)
    found = await rows(made, "SELECT w, n FROM e ORDER BY w")
    assert found == [{"w": 1.0, "n": 1}, {"w": 2.5, "n": 2}, {"w": 9999.0, "n": None}]


def test_schema_is_that_of_the_values(of: Session) -> None:
    sql = "SELECT $1 AS x UNION ALL SELECT $2"
    assert of.start(Statement(sql, {"1": 1, "2": 2})).schema.field("x").type == pa.int64()
