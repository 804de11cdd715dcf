"""Functions by the definitions of Substrait, and those of the engine by name."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.statements import Statement
from caraway_engine.sessions.sessions import Session
from tests.kit import engine
from tests.kit.client_plans import Handwritten, JsonObject, field, literal, project, read

NAMED = Statement("-- a plan", {})
COLUMNS: dict[str, Any] = {
    "i": pa.array([7], pa.int64()),
    "n": pa.array([None], pa.int64()),
    "s": ["Abc"],
    "x": [2.5],
    "d": pa.array([Decimal("10.00")], pa.decimal128(6, 2)),
    "day": pa.array([19_782], pa.date32()),
    "b": [True],
    "z": pa.array([0], pa.timestamp("us", "UTC")),
    "m": pa.array([0], pa.timestamp("us")),
}
DEC: JsonObject = {"decimal": {"precision": 6, "scale": 2}}
DEC_6: JsonObject = {"decimal": {"precision": 20, "scale": 6}}
ZONED: JsonObject = {"precisionTimestampTz": {"precision": 6}}
NAIVE: JsonObject = {"precisionTimestamp": {"precision": 6}}
I64: JsonObject = {"i64": {}}
T_READ = read(
    "t", i="i64", n="i64", s="string", x="fp64", d=DEC, day="date", b="bool", z=ZONED, m=NAIVE
)
WIDTH = len(COLUMNS)
INT, N, S, X, D, DAY, B, Z, M = map(field, range(WIDTH))
Calls = list[tuple[str, list[JsonObject], JsonObject | None, Any]]

STANDARD: Calls = [
    ("add:i64_i64", [INT, literal(i64=1)], I64, 8),
    ("subtract", [INT, N], I64, None),
    ("multiply", [D, D], {"decimal": {"precision": 13, "scale": 4}}, Decimal("100.0000")),
    ("divide", [INT, literal(i64=2)], I64, 3),
    ("divide", [D, literal(i64=3)], DEC_6, Decimal("3.333333")),
    ("modulus", [INT, literal(i64=-2)], I64, 1),
    ("negate", [INT], I64, -7),
    ("and", [B, {"literal": {"null": {"bool": {}}}}], None, None),
    ("or", [B, {"literal": {"null": {"bool": {}}}}], None, True),
    ("not", [B], None, False),
    ("equal", [N, N], None, None),
    ("is_not_distinct_from", [N, N], None, True),
    ("is_null", [N], None, True),
    ("between", [INT, literal(i64=7), literal(i64=9)], None, True),
    ("coalesce", [N, INT], None, 7),
    ("nullif", [INT, INT], None, None),
    ("like", [S, literal(string="A%")], None, True),
    ("concat", [S, literal(string="-"), S], None, "Abc-Abc"),
    ("concat", [S, {"literal": {"null": {"string": {}}}}], None, None),
    ("upper", [S], None, "ABC"),
    ("char_length", [S], None, 3),
    ("substring", [S, literal(i32=2), literal(i32=2)], None, "bc"),
    ("starts_with", [S, literal(string="A")], None, True),
    ("replace", [S, literal(string="b"), literal(string="x")], None, "Axc"),
    ("sqrt", [X], None, pytest.approx(2.5**0.5)),
    ("floor", [X], None, 2.0),
]  # fmt: skip
ENGINE: Calls = [
    ("concat", [S, {"literal": {"null": {"string": {}}}}], None, "Abc"),
    ("str_concat", [S, {"literal": {"null": {"string": {}}}}], None, None),
    ("regex_imatch", [S, literal(string="^a")], None, True),
    ("like", [S, literal(string="A\\%"), literal(string="\\")], None, False),
    ("substring", [S, literal(i64=2)], None, "bc"),
    ("overlay", [S, literal(string="zz"), literal(i64=2)], None, "Azz"),
    ("is_nan", [X], None, False),
    ("trim", [S], None, "Abc"),
    ("date_part", [literal(string="year"), DAY], None, 2024),
]


@pytest.fixture(scope="module")
def session() -> Session:
    return engine.session({"t": engine.memory(**COLUMNS)})


def called(made: Handwritten, call: JsonObject) -> bytes:
    return made.plan(project(T_READ, call, emit=[WIDTH]), "a")


async def value(session: Session, encoded: bytes) -> Any:
    (row,) = await engine.rows(session, session.sql_of(NAMED, encoded))
    return row["a"]


@pytest.mark.parametrize(("name", "arguments", "type_", "wanted"), STANDARD)
async def test_functions_of_substrait(
    name: str, arguments: list[JsonObject], type_: JsonObject | None, wanted: Any, session: Session
) -> None:
    made = Handwritten()
    found = await value(session, called(made, made.call(name, *arguments, type_=type_)))
    assert found == wanted


@pytest.mark.parametrize(("name", "arguments", "type_", "wanted"), ENGINE)
async def test_functions_of_the_engine_belong_to_no_extension(
    name: str, arguments: list[JsonObject], type_: JsonObject | None, wanted: Any, session: Session
) -> None:
    made = Handwritten(urn=None)
    found = await value(session, called(made, made.call(name, *arguments, type_=type_)))
    assert found == wanted


@pytest.mark.parametrize("parts", [["YEAR"], ["MONTH", "ONE"]])
async def test_parts_of_dates(parts: list[str], session: Session) -> None:
    made = Handwritten("extension:io.substrait:functions_datetime")
    call = made.call("extract", DAY, type_=I64)
    words = [{"enum": each} for each in parts]
    call["scalarFunction"]["arguments"] = [*words, {"value": DAY}]
    assert await value(session, called(made, call)) == {"YEAR": 2024, "MONTH": 2}[parts[0]]


@pytest.mark.parametrize(
    ("name", "arguments", "type_", "said"),
    [
        ("unheard_of", [INT], None, "'unheard_of'"),
        ("divide", [D, D], {"decimal": {"precision": 38, "scale": 9}}, "digits after the point"),
        ("substring", [S, INT], None, "no literal above 0"),
        ("substring", [S, literal(i64=-1)], None, "no literal above 0"),
        ("equal", [Z, M], None, "with a zone and without"),
        ("extract", [DAY], None, "part"),
        ("x y", [INT], None, "not known"),
        ("", [INT], None, "not known"),
    ],
)
def test_what_is_not_known_to_mean_the_same(
    name: str, arguments: list[JsonObject], type_: JsonObject | None, said: str, session: Session
) -> None:
    made = Handwritten()
    with pytest.raises(InvalidQueryError, match=said):
        session.sql_of(NAMED, called(made, made.call(name, *arguments, type_=type_)))


@pytest.mark.parametrize("name", ["unnest", "cast", "exists", "interval", "a(b", 'a"b', "x" * 99])
def test_words_of_sql_are_no_functions(name: str, session: Session) -> None:
    made = Handwritten(urn=None)
    with pytest.raises(InvalidQueryError, match="not supported"):
        session.sql_of(NAMED, called(made, made.call(name, INT)))


def test_other_extensions_are_not_known(session: Session) -> None:
    made = Handwritten("extension:com.example:functions_private")
    with pytest.raises(InvalidQueryError, match="not known"):
        session.sql_of(NAMED, called(made, made.call("add", INT, INT)))


def test_options_are_refused_but_for_errors_on_overflow(session: Session) -> None:
    made = Handwritten()
    call = made.call("add", INT, INT)
    call["scalarFunction"]["options"] = [{"name": "overflow", "preference": ["SILENT", "ERROR"]}]
    session.sql_of(NAMED, called(made, call))
    call["scalarFunction"]["options"][0]["preference"] = ["SATURATE"]
    with pytest.raises(InvalidQueryError, match="option 'overflow'"):
        session.sql_of(NAMED, called(made, call))


async def test_overflow_is_an_error(session: Session) -> None:
    made = Handwritten()
    call = made.call("add", INT, literal(i64=2**63 - 1), type_=I64)
    with pytest.raises(QueryError, match=r"(?i)overflow"):
        await value(session, called(made, call))


@pytest.mark.parametrize(
    ("name", "argument", "type_", "wanted"),
    [
        ("sum", INT, I64, 7),
        ("sum", D, {"decimal": {"precision": 38, "scale": 2}}, Decimal("10.00")),
        ("avg", X, {"fp64": {}}, 2.5),
        ("avg", D, {"decimal": {"precision": 38, "scale": 2}}, Decimal("10.00")),
        ("count", N, I64, 0),
        ("min", S, {"string": {}}, "Abc"),
    ],
)
async def test_aggregates(
    name: str, argument: JsonObject, type_: JsonObject, wanted: Any, session: Session
) -> None:
    made = Handwritten()
    measures = [{"measure": made.function(name, argument, type_=type_)}]
    rel = {"aggregate": {"input": T_READ, "measures": measures}}
    found = await value(session, made.plan(rel, "a"))
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize(
    ("urn", "name", "more", "said"),
    [
        ("extension:io.substrait:functions_arithmetic", "avg", {"outputType": I64}, "whole number"),
        ("extension:io.substrait:functions_arithmetic", "stddev", {}, "'stddev'"),
        ("extension:io.substrait:functions_arithmetic", "sum", {"phase": 1}, "intermediate"),
        (None, "array_agg", {}, "without an order"),
        (None, "unnest", {}, "'unnest'"),
    ],
)
def test_refused_aggregates(
    urn: str | None, name: str, more: JsonObject, said: str, session: Session
) -> None:
    made = Handwritten(urn)
    measures = [{"measure": made.function(name, INT, **more)}]
    rel = {"aggregate": {"input": T_READ, "measures": measures}}
    with pytest.raises(InvalidQueryError, match=said):
        session.sql_of(NAMED, made.plan(rel, "a"))
