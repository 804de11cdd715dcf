"""Expressions as text: planned again, they are the same expressions."""

import datetime as dt
import decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext, col
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.statements import plan_nodes
from caraway_engine.statements.plan_nodes import HiddenError
from caraway_engine.table_functions import wording

EXACT = decimal.Context(prec=76)
SCALARS: list[pa.Scalar] = [
    pa.scalar(value, type_)
    for value, type_ in [
        (False, pa.bool_()),
        (-(2**63), pa.int64()),
        (2**64 - 1, pa.uint64()),
        (-128, pa.int8()),
        (0.1, pa.float32()),
        (-0.0, pa.float64()),
        (5e-324, pa.float64()),
        (float("nan"), pa.float64()),
        (float("-inf"), pa.float32()),
        ("", pa.string()),
        ("a'b\\'c\n\t--/*x*/é😀", pa.large_string()),
        ("$1 ? :x", pa.string_view()),
        (b"\x00\xff'", pa.binary()),
        (decimal.Decimal("1.50"), pa.decimal32(5, 2)),
        (decimal.Decimal("-1234567890123456789.12345678"), pa.decimal128(38, 8)),
        (decimal.Decimal("1E+50"), pa.decimal256(76, 2)),
        (dt.date(1, 1, 1), pa.date32()),
        (-1, pa.timestamp("ns", "UTC")),
        (2**36, pa.timestamp("s")),
        (5, pa.timestamp("ms", "Europe/Berlin")),
        (5, pa.timestamp("us", "+05:30")),
        (-7, pa.duration("ns")),
        (None, pa.null()),
        (None, pa.int8()),
        (None, pa.string_view()),
        (None, pa.timestamp("us", "UTC")),
        (None, pa.time64("us")),
        (None, pa.decimal128(5, 2)),
    ]
]


@pytest.mark.parametrize("value", SCALARS, ids=lambda each: str(each.type))
def test_a_constant_keeps_its_value_and_its_exact_type(value: pa.Scalar) -> None:
    found = _constant(wording.literal(value))
    assert found.type == value.type
    # The text distinguishes -0.0 from 0.0, and NaN is equal to itself.
    assert repr(found) == repr(value)


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_no_text_ends_its_own_quotes(text: str) -> None:
    assert _constant(wording.literal(pa.scalar(text))).as_py() == text


@settings(max_examples=50)
@given(st.floats(width=32) | st.floats(), st.sampled_from([pa.float32(), pa.float64()]))
def test_floating_numbers_are_exact(value: float, type_: pa.DataType) -> None:
    scalar = pa.scalar(value, pa.float64()).cast(type_)
    assert repr(_constant(wording.literal(scalar))) == repr(scalar)


def _constant(text: str) -> pa.Scalar:
    return _context().sql(f"SELECT {text} AS v").to_arrow_table().column("v")[0]


@cache
def _context() -> SessionContext:
    made = SessionContext(SessionConfig().with_target_partitions(1))
    made.register_record_batches("t", [pa.table(ROWS).to_batches()])
    return made


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar([1]),
        pa.scalar({"a": 1}),
        pa.scalar(None, pa.list_(pa.int8())),
        pa.scalar(5, pa.time32("s")),
        pa.scalar(b"ab", pa.binary(2)),
        pa.scalar(pa.MonthDayNano([1, 2, 3])),
    ],
    ids=lambda each: str(each.type),
)
def test_constants_without_a_text_are_refused(value: pa.Scalar) -> None:
    with pytest.raises(HiddenError):
        wording.literal(value)


ROWS = {
    "a": pa.array([1, 2, None, -3], pa.int64()),
    "n": pa.array([1, 2, 3, None], pa.int8()),
    "s": ["x", "y'z", None, ""],
    "p": pa.array([True, False, None, True]),
    "at": pa.array([0, 10**6, None, -1], pa.timestamp("us", "UTC")),
}
VALUES = st.recursive(
    st.sampled_from(["a", "n", "1", "-2", "nullif(a, 1)", "coalesce(n, a)", "length(s)", "abs(a)"]),
    lambda inner: (
        st.builds(
            "({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "%", "&", "|"]), inner
        )
        | st.builds("(CASE WHEN p THEN {} ELSE {} END)".format, inner, inner)
        | st.builds("CAST({} AS SMALLINT)".format, inner)
        | st.builds("(- {})".format, inner)
    ),
    max_leaves=4,
)
CONDITIONS = st.recursive(
    st.builds("({} {} {})".format, VALUES, st.sampled_from(["=", "<>", "<", ">="]), VALUES)
    | st.builds("{} IN ({}, NULL, 3)".format, VALUES, VALUES)
    | st.builds("{} NOT BETWEEN {} AND {}".format, VALUES, VALUES, VALUES)
    | st.sampled_from(
        ["p", "p IS NOT TRUE", "p IS UNKNOWN", "s LIKE '%''%'", "s NOT ILIKE 'X'", "s ~ '^x'",
         "s SIMILAR TO 'x|y'", "s LIKE 'y!''%' ESCAPE '!'", "at > '1970-01-01T00:00:00Z'",
         "(a IS DISTINCT FROM n)", "s || 'q' = 'xq'", "CASE s WHEN 'x' THEN p END",
         "TRY_CAST(s AS INT) IS NULL"]
    ),
    lambda inner: st.builds("({} AND {})".format, inner, inner)
    | st.builds("({} OR {})".format, inner, inner)
    | st.builds("NOT ({})".format, inner),
    max_leaves=4,
)  # fmt: skip


@settings(max_examples=60)
@given(CONDITIONS, st.booleans())
def test_a_condition_as_text_passes_the_same_rows(condition: str, is_short: bool) -> None:
    context = _context()
    frame = context.sql(f"SELECT * FROM t WHERE {condition}")
    (predicate,) = (
        node.variant.predicate()
        for node in plan_nodes.nodes(frame.logical_plan())
        if node.kind == "Filter"
    )
    everything = context.sql("SELECT * FROM t")
    try:
        text = wording.worded(
            predicate, lambda name: f'"{name}"', wording.type_in(everything), is_short=is_short
        )
    except HiddenError:
        return
    assert _answer(f"SELECT * FROM t WHERE {text}") == _answer(f"SELECT * FROM t WHERE {condition}")


def _answer(sql: str) -> list[dict[str, Any]] | str:
    try:
        rows: list[dict[str, Any]] = _context().sql(sql).to_pylist()
        return rows
    except Exception as exc:  # An overflow, or a value that cannot be cast, in both.
        return type(exc).__name__


def test_a_deep_expression_is_refused_before_python_gives_up() -> None:
    frame = _context().sql("SELECT * FROM t")
    expression = col("p")
    for _ in range(300):
        expression = ~expression
    with pytest.raises(HiddenError, match="depth"):
        wording.worded(expression.expr, str, wording.type_in(frame))
