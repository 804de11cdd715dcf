"""Expressions of plans in the words of the database, and those that stay with the engine."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from datafusion.substrait import Producer
from substrait.algebra_pb2 import AggregateFunction, Expression, Rel
from substrait.plan_pb2 import Plan

from caraway_core.tables import RemoteColumn
from caraway_engine.remote import expressions, unfolding
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.words import SqlWriter
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import kind, reference, walk, width
from caraway_plugins.sources.postgres.dialect import POSTGRES

COLUMNS = {
    "i": pa.int64(), "j": pa.int32(), "b": pa.bool_(), "s": pa.string(), "f": pa.float64(),
    "n": pa.decimal128(12, 2), "d": pa.date32(), "t": pa.timestamp("us"),
    "z": pa.timestamp("us", "UTC"), "x": pa.binary(),
}  # fmt: skip
SCHEMA = pa.schema(list(COLUMNS.items()))
WRITER = SqlWriter(POSTGRES)
TERMS = [WRITER.column(RemoteColumn(name, type_, is_comparable=True))
         for name, type_ in COLUMNS.items()]  # fmt: skip


@pytest.fixture(scope="module")
def context() -> SessionContext:
    made = SessionContext(SessionConfig().with_target_partitions(1))
    made.register_record_batches("r", [[pa.RecordBatch.from_pylist([], schema=SCHEMA)]])
    return made


def planned(context: SessionContext, sql: str) -> tuple[Rel, Functions]:
    plan = Plan()
    optimized = context.sql(sql).optimized_logical_plan()
    plan.ParseFromString(Producer.to_substrait_plan(optimized, context).encode())
    return plan.relations[0].root.input, Functions(plan)


def worded(context: SessionContext, condition: str) -> str:
    """Return the SQL of a condition over the columns of `r`, from the plan that the engine made."""
    everything = ", ".join(COLUMNS)
    rel, functions = planned(context, f"SELECT {everything} FROM r WHERE {condition}")
    rel = unfolding.unfolded(rel)
    (found,) = [each for each in walk(rel) if kind(each) == "filter"]
    assert width(found.filter.input) == len(COLUMNS)
    return expressions.scalar(found.filter.condition, TERMS, functions, WRITER).sql


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        ("i = 5", '("i" = (5)::int8)'),
        ("5 < i", '("i" > (5)::int8)'),
        ("i <> -1", '("i" <> (-1)::int8)'),
        ("b", '"b"'),
        ("NOT b", '(NOT "b")'),
        ("i IS NULL", '("i" IS NULL)'),
        ("x IS NOT NULL", '("x" IS NOT NULL)'),
        ("s = 'it''s'", "(\"s\" = 'it''s'::text)"),
        ("s < 'a'", "(\"s\" COLLATE \"C\" < 'a'::text)"),
        ("n >= 1.50", None),
        ("d = DATE '2024-02-29'", "(\"d\" = DATE '2024-02-29')"),
        ("t > TIMESTAMP '2024-01-01 00:00:00.000001'",
         "(\"t\" > TIMESTAMP '2024-01-01 00:00:00.000001')"),
        ("i > 1 AND (b OR s = 'x')", None),
        ("i IN (1, 2, 3, 4, 5)", None),
        ("i + 1 > 7", None),
    ],
)  # fmt: skip
def test_conditions_that_the_database_answers_alike(
    context: SessionContext, condition: str, sql: str | None
) -> None:
    found = worded(context, condition)
    if sql is not None:
        assert found == sql
    assert found.count("(") == found.count(")")


@pytest.mark.parametrize(
    "condition",
    [
        "i / 2 = 1", "i % 2 = 1", "upper(s) = 'X'", "length(s) > 1", "s ILIKE 'a%'",
        "s || 'x' = 'y'", "s LIKE s", "CASE WHEN b THEN i = 1 ELSE j = 1 END", "x = X'00'",
        "abs(i) = 1",
        "i IS DISTINCT FROM j", "random() > 0.5", "s SIMILAR TO 'a'", "sqrt(f) > 1", "~i = 1",
        "date_part('month', d) = 2", "t + interval '1 day' > t", "s > 'a\0b'",
    ],
)  # fmt: skip
def test_conditions_that_stay_with_the_engine(context: SessionContext, condition: str) -> None:
    try:
        rel, functions = planned(context, f"SELECT {', '.join(COLUMNS)} FROM r WHERE {condition}")
    except Exception:
        return  # It has no words in the plan language, so it is never asked.
    filters = [each for each in walk(unfolding.unfolded(rel)) if kind(each) == "filter"]
    with pytest.raises(NotPushableError):
        for each in filters:
            expressions.scalar(each.filter.condition, TERMS, functions, WRITER)


@pytest.mark.parametrize(
    ("pattern", "is_sent"),
    [("a%", True), ("%a", True), ("_", True), ("", True), ("it''s", True), ("a\\%", False)],
)
def test_patterns_are_sent_where_both_read_them_alike(
    context: SessionContext, pattern: str, is_sent: bool
) -> None:
    if is_sent:
        worded(context, f"(s LIKE '{pattern}') IS NOT NULL OR b")
    else:
        with pytest.raises(NotPushableError):
            worded(context, f"s LIKE '{pattern}'")


def aggregate(context: SessionContext, sql: str) -> Term:
    rel, functions = planned(context, f"SELECT {sql} FROM r")
    found, *others = [each for each in walk(unfolding.unfolded(rel)) if kind(each) == "aggregate"]
    if others:
        raise NotPushableError("DISTINCT, of which the engine has made two groupings")
    (measure,) = found.aggregate.measures
    names = [name for name in COLUMNS if name in _columns(sql)]
    terms = [TERMS[list(COLUMNS).index(name)] for name in names]
    assert len(terms) >= width(found.aggregate.input)
    condition = (
        expressions.scalar(measure.filter, terms, functions, WRITER)
        if measure.HasField("filter")
        else None
    )
    return expressions.measure(measure.measure, condition, terms, functions, WRITER)


def _columns(sql: str) -> set[str]:
    return {each.strip("()") for each in sql.replace("(", " ").replace(")", " ").split()}


@pytest.mark.parametrize(
    ("sql", "words_", "kind_"),
    [
        ("count( i )", 'count("i")', "int"),
        ("count(*)", "count(*)", "int"),
        ("sum( i )", '(sum("i"))::int8', "int"),
        ("sum( n )", 'sum("n")', "decimal"),
        ("min( s )", 'min("s" COLLATE "C")', "text"),
        ("max( d )", 'max("d")', "date"),
        ("sum( i ) FILTER (WHERE b )", '(sum("i") FILTER (WHERE "b"))::int8', "int"),
        ("avg( n )", '(div(sum("n") * 1000000, nullif(count("n"), 0)) * 0.000001)', "decimal"),
    ],
)
def test_aggregates_that_the_database_answers_alike(
    context: SessionContext, sql: str, words_: str, kind_: str
) -> None:
    found = aggregate(context, sql)
    assert (found.sql, found.kind) == (words_, kind_)


@pytest.mark.parametrize(
    "sql",
    ["sum( f )", "avg( f )", "min( f )", "max( b )", "min( x )",
     "stddev( f )", "array_agg( i )", "bool_and( b )",
     "median( n )", "first_value( i ORDER BY i )"],
)  # fmt: skip
def test_aggregates_that_stay_with_the_engine(context: SessionContext, sql: str) -> None:
    with pytest.raises(NotPushableError):
        aggregate(context, sql)


def test_distinct_values_are_counted_where_both_compare_them_alike(
    context: SessionContext,
) -> None:
    _, functions = planned(context, "SELECT count(i) FROM r")
    for name, term in zip(COLUMNS, TERMS, strict=True):
        function = AggregateFunction(
            function_reference=functions.anchor("count"),
            invocation=AggregateFunction.AGGREGATION_INVOCATION_DISTINCT,
        )
        function.arguments.add().value.CopyFrom(reference(0))
        if name in ("f", "x"):
            with pytest.raises(NotPushableError):
                expressions.measure(function, None, [term], functions, WRITER)
        else:
            found = expressions.measure(function, None, [term], functions, WRITER)
            assert found.sql == f'count(DISTINCT "{name}")'


def test_digits_of_sums_and_averages_are_counted(context: SessionContext) -> None:
    assert (aggregate(context, "sum( n )").digits, aggregate(context, "sum( n )").scale) == (36, 2)
    average = aggregate(context, "avg( n )")
    assert (average.digits, average.scale) == (32, 6)


Literal = Expression.Literal


def stamp(value: int, precision: int) -> Any:
    return Literal.PrecisionTimestamp(value=value, precision=precision)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (Literal(boolean=False), False),
        (Literal(i8=-128), -128),
        (Literal(i64=-(2**63)), -(2**63)),
        (Literal(i8=-1, type_variation_reference=1), 255),
        (Literal(i64=7, type_variation_reference=1), 7),
        (Literal(fp64=1.5), 1.5),
        (Literal(string=""), ""),
        (Literal(string="a", type_variation_reference=1), "a"),
        (Literal(date=0), dt.date(1970, 1, 1)),
        (Literal(date=-719162), dt.date(1, 1, 1)),
        (Literal(decimal=Literal.Decimal(
            value=(-150).to_bytes(16, "little", signed=True), precision=5, scale=2)),
         Decimal("-1.50")),
        (Literal(precision_timestamp=stamp(-1, 0)), dt.datetime(1969, 12, 31, 23, 59, 59)),
        (Literal(precision_timestamp=stamp(1_000, 9)), dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
        (Literal(precision_timestamp_tz=stamp(1, 3)),
         dt.datetime(1970, 1, 1, 0, 0, 0, 1000, dt.UTC)),
    ],
)  # fmt: skip
def test_literals_are_values(literal: Any, value: object) -> None:
    found = expressions.value_of(literal)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "literal",
    [
        Literal(),
        Literal(null={}),
        Literal(date=1, type_variation_reference=1),
        Literal(i64=1, type_variation_reference=2),
        Literal(binary=b"a"),
        Literal(date=2**31 - 1),
        Literal(precision_timestamp=stamp(1, 9)),
        Literal(precision_timestamp=stamp(2**62, 0)),
    ],
)
def test_values_that_python_has_not_stay_with_the_engine(literal: Any) -> None:
    with pytest.raises(NotPushableError):
        expressions.value_of(literal)


def test_a_long_decimal_keeps_its_digits() -> None:
    number = 12345678901234567890123456789012345678
    held = Literal.Decimal(value=number.to_bytes(16, "little", signed=True), precision=38, scale=0)
    assert expressions.value_of(Literal(decimal=held)) == Decimal(number)
    held.scale = 5
    assert str(expressions.value_of(Literal(decimal=held))).replace(".", "") == str(number)


def test_parts_of_a_column_and_unknown_forms_are_refused(context: SessionContext) -> None:
    _, functions = planned(context, "SELECT i FROM r")
    nested = Expression()
    nested.selection.root_reference.SetInParent()
    nested.selection.direct_reference.struct_field.child.struct_field.field = 1
    for expression in (Expression(), nested):
        with pytest.raises(NotPushableError):
            expressions.scalar(expression, TERMS, functions, WRITER)
