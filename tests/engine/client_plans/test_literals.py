"""Literals keep their type and their value."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.statements import Statement
from caraway_engine.sessions.sessions import Session
from tests.kit import engine
from tests.kit.client_plans import JsonObject, literal, plan, project, read

NAMED = Statement("-- a plan", {})
T_READ = read("t", k="i64")
MOMENT = 1_709_168_523_000_004
DECIMAL = {"value": "LAEAAAAAAAAAAAAAAAAAAA==", "precision": 10, "scale": 2}


@pytest.fixture(scope="module")
def session() -> Session:
    return engine.session({"t": engine.memory(k=[1])})


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        ({"boolean": True}, "Boolean", True),
        ({"i8": -128}, "Int8", -128),
        ({"i16": 5}, "Int16", 5),
        ({"i32": -5}, "Int32", -5),
        ({"i64": -(2**63)}, "Int64", -(2**63)),
        ({"i64": 2**63 - 1}, "Int64", 2**63 - 1),
        ({"i8": -1, "typeVariationReference": 1}, "UInt8", 255),
        ({"i64": -1, "typeVariationReference": 1}, "UInt64", 2**64 - 1),
        ({"fp32": 0.1}, "Float32", pytest.approx(0.1)),
        ({"fp64": 0.1}, "Float64", 0.1),
        ({"fp64": "-Infinity"}, "Float64", float("-inf")),
        ({"fp64": 1e300}, "Float64", 1e300),
        ({"string": "it's \\ $1 ? -- \n"}, "Utf8", "it's \\ $1 ? -- \n"),
        ({"varChar": {"value": "x", "length": 3}}, "Utf8", "x"),
        ({"binary": "AP8="}, "Binary", b"\x00\xff"),
        ({"date": 19_782}, "Date32", dt.date(2024, 2, 29)),
        ({"decimal": DECIMAL}, "Decimal128(10, 2)", Decimal("3.00")),
        (
            {"precisionTimestamp": {"precision": 6, "value": MOMENT}},
            "Timestamp(µs)",
            dt.datetime(2024, 2, 29, 1, 2, 3, 4),
        ),
        (
            {"precisionTimestampTz": {"precision": 6, "value": MOMENT}},
            'Timestamp(µs, "UTC")',
            dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC),
        ),
        (
            {"precisionTime": {"precision": 3, "value": 1_000}},
            "Time32(ms)",
            dt.time(0, 0, 1),
        ),
        ({"null": {"i16": {}}}, "Int16", None),
        ({"null": {"decimal": {"precision": 5, "scale": 1}}}, "Decimal128(5, 1)", None),
    ],
)
async def test_values_and_types(
    value: dict[str, Any], kind: str, wanted: Any, session: Session
) -> None:
    sql = session.sql_of(NAMED, plan(project(T_READ, literal(**value), emit=[1]), "v"))
    typed = f"SELECT v, arrow_typeof(v) AS kind FROM ({sql}) AS q"
    ((found, said),) = [tuple(each.values()) for each in await engine.rows(session, typed)]
    assert (found, said) == (wanted, kind)


async def test_intervals_are_added(session: Session) -> None:
    interval = {
        "intervalCompound": {
            "intervalYearToMonth": {"years": 1, "months": 1},
            "intervalDayToSecond": {"days": -2, "seconds": 3, "subseconds": "4", "precision": 6},
        }
    }
    sql = session.sql_of(NAMED, plan(project(T_READ, literal(**interval), emit=[1]), "v"))
    added = f"SELECT TIMESTAMP '2024-01-31T00:00:00' + v AS v FROM ({sql}) AS q"
    (row,) = await engine.rows(session, added)
    assert row["v"].isoformat() == "2025-02-26T00:00:03.000004"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"string": "a\0b"}, "NUL"),
        ({"date": 2**31 - 1}, "years 1 to 9999"),
        ({"decimal": {**DECIMAL, "precision": 2}}, "more digits"),
        ({"decimal": {**DECIMAL, "value": "AA=="}}, "more digits"),
        ({"decimal": {**DECIMAL, "precision": 60}}, "decimal"),
        ({"precisionTimestamp": {"precision": 11, "value": 1}}, "precision 11"),
        ({"intervalDayToSecond": {"precision": 40, "days": 1}}, "precision 40"),
        ({"list": {"values": [{"i64": 1}]}}, "list"),
        ({"uuid": "AAAAAAAAAAAAAAAAAAAAAA=="}, "uuid"),
        ({"i32": 1, "typeVariationReference": 7}, "i32"),
    ],
)
def test_what_has_no_form_in_sql(value: dict[str, Any], said: str, session: Session) -> None:
    with pytest.raises(InvalidQueryError, match=said):
        session.sql_of(NAMED, plan(project(T_READ, literal(**value), emit=[1]), "v"))


async def test_rows_of_values(session: Session) -> None:
    rows = [{"fields": [literal(i64=n), literal(string=s)]} for n, s in ((1, "a"), (2, "b"))]
    rows.append({"fields": [literal(null={"i64": {}}), literal(string="c")]})
    schema = {"names": ["n", "s"], "struct": {"types": [{"i64": {}}, {"string": {}}]}}
    rel: JsonObject = {"read": {"baseSchema": schema, "virtualTable": {"expressions": rows}}}
    found = await engine.rows(session, session.sql_of(NAMED, plan(rel, "n", "s")))
    assert [tuple(each.values()) for each in found] == [(1, "a"), (2, "b"), (None, "c")]
    rel["read"]["virtualTable"]["expressions"] = []
    assert await engine.rows(session, session.sql_of(NAMED, plan(rel, "n", "s"))) == []
    rel["read"]["virtualTable"]["expressions"] = [{"fields": [literal(i64=1)]}]
    with pytest.raises(InvalidQueryError, match="more or fewer values"):
        session.sql_of(NAMED, plan(rel, "n", "s"))
