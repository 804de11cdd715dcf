"""Rounded decimals keep their values next to others, and their types."""

import asyncio
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import arithmetic
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

D = Decimal
VALUES = [D("0.00"), D("1.50"), D("2.25"), D("-1.75"), D("10.00"), None]
SAME = 3
"""Values that round to themselves with one place."""
BIT_VALUES = [-3, 0, 1, 2, 7, 42]
_OPERANDS = st.sampled_from(["k", "m", "2", "12", "(k + 1)"])
_BITS = st.builds("({} {} {})".format, _OPERANDS, st.sampled_from("&|^"), _OPERANDS)
_NEGATED = st.recursive(
    _BITS,
    lambda inner: st.one_of(
        st.builds("(-{})".format, inner),
        st.builds("({} {} {})".format, inner, st.sampled_from("&|^+"), _OPERANDS),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def made() -> Session:
    values = pa.array(VALUES, pa.decimal128(10, 2))
    return session({
        "t": memory(d=values, n=pa.array(range(6), pa.int64())), "u": memory(d=values)
    })  # fmt: skip


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM t JOIN u ON round(t.d, 1) = u.d",
        "SELECT count(*) AS n FROM t JOIN u ON round(t.d, 1) IS NOT DISTINCT FROM u.d "
        "WHERE t.d IS NOT NULL",
        "SELECT count(*) AS n FROM t WHERE round(d, 1) IN (SELECT d FROM u)",
        "SELECT count(*) AS n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.d = round(t.d, 1))",
        "SELECT count(*) AS n FROM t WHERE round(d, 1) = d",
        "SELECT count(*) AS n FROM t WHERE nullif(round(d, 1), d) IS NULL AND d IS NOT NULL",
        "SELECT count(*) AS n FROM (SELECT round(d, 1) FROM t INTERSECT SELECT d FROM u) q "
        "WHERE 1 = 1",
        "SELECT count(*) - 1 AS n FROM (SELECT round(d, 1) AS r FROM t GROUP BY round(d, 1)) q "
        "JOIN u ON q.r = u.d OR u.d IS NULL AND q.r = 0",
    ],
)
async def test_values_are_compared_by_their_scale(made: Session, sql: str) -> None:
    ((found,),) = [each.values() for each in await rows(made, sql)]
    assert found == (SAME + 1 if "INTERSECT" in sql else SAME)


@pytest.mark.parametrize(
    ("expression", "digits", "scale"),
    [
        ("round(d, 1)", 10, 1),
        ("round(d, 0)", 9, 0),
        ("round(d, 2)", 11, 2),
        ("round(d, 7)", 11, 2),
        ("round(d, -1)", 9, 0),
        ("round(d, CAST(1 AS INT))", 10, 1),
        ("round(d, CAST('1' AS INT))", 10, 1),
        ("round(CAST(d AS DECIMAL(38, 2)), 1)", 38, 1),
        ("round(CAST(d AS DECIMAL(60, 2)), 1)", 60, 1),
    ],
)
async def test_types_are_those_of_the_engine(
    made: Session, expression: str, digits: int, scale: int
) -> None:
    (row, *_) = await rows(made, f"SELECT arrow_typeof({expression}) AS x FROM t")
    assert row["x"] == f"Decimal{128 if digits <= 38 else 256}({digits}, {scale})"


async def test_branches_have_one_type(made: Session) -> None:
    sql = "SELECT CASE WHEN n > 2 THEN round(d, 1) ELSE d END AS x FROM t ORDER BY n"
    found = [each["x"] for each in await rows(made, sql)]
    assert found == [D("0.00"), D("1.50"), D("2.25"), D("-1.8"), D("10.0"), None]


async def test_a_column_decides_the_places(made: Session) -> None:
    sql = "SELECT round(d, n) AS x FROM t WHERE round(d, n) = d ORDER BY n"
    found = [each["x"] for each in await rows(made, sql)]
    assert found == [D("0.00"), D("1.50"), D("2.25"), D("-1.75"), D(10)]


@pytest.fixture(scope="module")
def made_bits() -> Session:
    m = pa.array([5, 1, -1, 12, 3, 0], pa.int64())
    return session({"t": memory(k=pa.array(BIT_VALUES, pa.int64()), m=m)})


@settings(max_examples=100)
@given(bits=_NEGATED)
def test_negated_bits_are_those_of_python(made_bits: Session, bits: str) -> None:
    table = asyncio.run(rows(made_bits, f"SELECT k, m, -{bits} AS x FROM t"))
    expected = [eval(f"-{bits}", {"k": row["k"], "m": row["m"]}) for row in table]
    assert [row["x"] for row in table] == expected


@pytest.mark.parametrize("words", ["select a - b", "select a | b", "select a || '-'"])
def test_most_statements_are_not_walked(words: str) -> None:
    assert arithmetic.may_negate_bits(words) == (words == "select a || '-'")
