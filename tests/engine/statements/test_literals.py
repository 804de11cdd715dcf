"""Literals of plans as Python values, from SQL to Substrait and back."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from datafusion import SessionContext
from datafusion.substrait import Producer
from hypothesis import given, settings
from hypothesis import strategies as st
from substrait.algebra_pb2 import Expression
from substrait.plan_pb2 import Plan

from caraway_engine.statements import literals

CONTEXT = SessionContext()


def of(sql: str) -> Any:
    """Plan `SELECT sql`, and return the value of the literal that it is."""
    plan = Plan()
    optimized = CONTEXT.sql(f"SELECT {sql} AS c FROM (VALUES (1)) t(a)").optimized_logical_plan()
    plan.ParseFromString(Producer.to_substrait_plan(optimized, CONTEXT).encode())
    (expression,) = plan.relations[0].root.input.project.expressions
    return literals.value(expression)


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("arrow_cast(-128, 'Int8')", -128),
        ("arrow_cast(-32768, 'Int16')", -32768),
        ("arrow_cast(2147483647, 'Int32')", 2**31 - 1),
        ("arrow_cast(255, 'UInt8')", 255),
        ("arrow_cast(65535, 'UInt16')", 65535),
        ("arrow_cast(9223372036854775807, 'UInt64')", 2**63 - 1),
        ("true", True),
        ("false", False),
        ("1.5", 1.5),
        ("-0.0", 0.0),
        ("1e308", 1e308),
        ("''", ""),
        ("'it''s é 漢 \U0001f600'", "it's é 漢 \U0001f600"),
        ("arrow_cast('a', 'Binary')", b"a"),
        ("X'00ff'", b"\x00\xff"),
        ("date '1970-01-01'", dt.date(1970, 1, 1)),
        ("date '0001-01-01'", dt.date(1, 1, 1)),
        ("date '9999-12-31'", dt.date(9999, 12, 31)),
        ("arrow_cast('1.50', 'Decimal128(10, 2)')", Decimal("1.50")),
        ("arrow_cast('-0.01', 'Decimal128(38, 2)')", Decimal("-0.01")),
        ("arrow_cast('12345678901234567890123456789012345678', 'Decimal128(38, 0)')",
         Decimal("12345678901234567890123456789012345678")),
        ("timestamp '2024-02-29 23:59:59.123456'", dt.datetime(2024, 2, 29, 23, 59, 59, 123456)),
        ("timestamp '1969-12-31 23:59:59.999999'", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("arrow_cast('2024-01-01', 'Timestamp(s)')", dt.datetime(2024, 1, 1)),
        ("arrow_cast('2024-01-01T00:00:00.5', 'Timestamp(ms)')",
         dt.datetime(2024, 1, 1, 0, 0, 0, 500_000)),
        ("arrow_cast('1900-01-01T00:00:00.000001', 'Timestamp(us)')",
         dt.datetime(1900, 1, 1, 0, 0, 0, 1)),
        ("arrow_cast('2024-01-01T00:00:00Z', 'Timestamp(us, \"UTC\")')",
         dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("NULL", None),
        ("arrow_cast(NULL, 'Int64')", None),
        ("arrow_cast(NULL, 'Utf8')", None),
    ],
)  # fmt: skip
def test_a_literal_is_its_value(sql: str, value: Any) -> None:
    found = of(sql)
    assert (type(found), found) == (type(value), value)


def test_the_sign_of_zero_is_kept() -> None:
    assert math.copysign(1, of("-0.0e0")) == -1


@pytest.mark.parametrize(
    "sql",
    [
        # Nothing in Python says them without loss.
        "timestamp '2024-01-01 00:00:00.123456789'",
        "interval '1 month'",
        "arrow_cast(4294967295, 'UInt32')",
        "arrow_cast(18446744073709551615, 'UInt64')",
        "[1, 2]",
        # A column is not a literal.
        "a",
        "a + 1",
    ],
)
def test_what_has_no_value_in_python_is_unknown(sql: str) -> None:
    assert of(sql) is literals.UNKNOWN


def literal(**fields: Any) -> Expression:
    return Expression(literal=Expression.Literal(**fields))


def stamp(value: int, precision: int) -> Expression:
    kind = Expression.Literal.PrecisionTimestamp(value=value, precision=precision)
    return literal(precision_timestamp=kind)


@pytest.mark.parametrize(
    "expression",
    [
        Expression(),
        literal(),
        literal(i64=-1, type_variation_reference=1),
        literal(date=2**31 - 1),
        literal(date=-(2**31)),
        stamp(2**62, 0),
        stamp(2**63 - 1, 3),
        stamp(1, 9),
        stamp(-1, 9),
        stamp(1_001, 9),
        literal(var_char=Expression.Literal.VarChar(value="a", length=1)),
        literal(fp32=1.5),
    ],
)
def test_bounds_of_python_are_unknown_and_no_error(expression: Expression) -> None:
    assert literals.value(expression) is literals.UNKNOWN


@pytest.mark.parametrize(
    ("value", "precision", "microseconds"),
    [(1, 0, 1_000_000), (-1, 0, -1_000_000), (1, 3, 1_000), (7, 6, 7), (-7, 6, -7),
     (1_000, 9, 1), (-1_000, 9, -1), (2**62 // 1000 * 1000, 9, 2**62 // 1000)],
)  # fmt: skip
def test_a_moment_counts_from_1970_in_its_unit(
    value: int, precision: int, microseconds: int
) -> None:
    expected = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=microseconds)
    assert literals.value(stamp(value, precision)) == expected


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_a_decimal_keeps_every_digit(unscaled: int, scale: int) -> None:
    held = Expression.Literal.Decimal(
        value=unscaled.to_bytes(16, "little", signed=True), precision=38, scale=scale
    )
    found = literals.value(literal(decimal=held))
    assert found.as_tuple() == Decimal((unscaled < 0, Decimal(abs(unscaled)).as_tuple().digits,
                                        -scale)).as_tuple()  # fmt: skip
