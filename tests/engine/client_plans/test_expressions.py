"""Expressions of plans: CASE, lists, casts, windows, subqueries, and those that are refused."""

from typing import Any

import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.statements import Statement
from caraway_engine.sessions.sessions import Session
from tests.kit import engine
from tests.kit.client_plans import Handwritten, JsonObject, field, literal, project, read

NAMED = Statement("-- a plan", {})
T_READ = read("t", k="i64", v="i64")
U_READ = read("u", w="i64")
K, V = field(0), field(1)
I64: JsonObject = {"i64": {}}
ASCENDING: JsonObject = {"expr": V, "direction": "SORT_DIRECTION_ASC_NULLS_LAST"}


@pytest.fixture(scope="module")
def session() -> Session:
    tables = {
        "t": engine.memory(k=[1, 1, 2, None], v=[10, 20, 30, 40]),
        "u": engine.memory(w=[1, 9]),
    }
    return engine.session(tables)


async def answer(of: Session, encoded: bytes) -> list[Any]:
    rows = await engine.rows(of, of.sql_of(NAMED, encoded))
    return sorted((each["a"] for each in rows), key=str)


def window(made: Handwritten, name: str, *arguments: JsonObject, **more: Any) -> JsonObject:
    call = made.function(name, *arguments, type_=I64, **more)
    return project(T_READ, {"windowFunction": call}, emit=[2])


async def test_case_without_else_is_null(session: Session) -> None:
    made = Handwritten()
    branch = {"if": made.call("gt", V, literal(i64=15)), "then": K}
    rel = project(T_READ, {"ifThen": {"ifs": [branch]}}, emit=[2])
    assert await answer(session, made.plan(rel, "a")) == [1, 2, None, None]


async def test_switch(session: Session) -> None:
    ifs = [{"if": {"i64": 1}, "then": literal(string="one")}]
    switch = {"match": K, "ifs": ifs, "else": literal(string="other")}
    rel = project(T_READ, {"switchExpression": switch}, emit=[2])
    found = await answer(session, Handwritten().plan(rel, "a"))
    assert found == ["one", "one", "other", "other"]


async def test_a_list_of_options(session: Session) -> None:
    options = [literal(i64=1), literal(null={"i64": {}})]
    rel = project(T_READ, {"singularOrList": {"value": K, "options": options}}, emit=[2])
    assert await answer(session, Handwritten().plan(rel, "a")) == [None, None, True, True]


@pytest.mark.parametrize(
    ("behavior", "wanted"),
    [("FAILURE_BEHAVIOR_RETURN_NULL", [None] * 4), ("FAILURE_BEHAVIOR_THROW_EXCEPTION", "cast")],
)
async def test_casts_fail_as_asked(behavior: str, wanted: Any, session: Session) -> None:
    text = literal(string="x")
    cast = {"cast": {"input": text, "type": {"i32": {}}, "failureBehavior": behavior}}
    encoded = Handwritten().plan(project(T_READ, cast, emit=[2]), "a")
    if isinstance(wanted, list):
        assert await answer(session, encoded) == wanted
        return
    with pytest.raises(InvalidQueryError, match=r"not a valid INT"):
        await answer(session, encoded)


@pytest.mark.parametrize(
    "type_", [{"precisionTimestampTz": {"precision": 6}}, {"list": {"type": I64}}, {"uuid": {}}]
)
def test_refused_casts(type_: JsonObject, session: Session) -> None:
    cast = {"cast": {"input": K, "type": type_}}
    with pytest.raises(InvalidQueryError, match="cast"):
        session.sql_of(NAMED, Handwritten().plan(project(T_READ, cast, emit=[2]), "a"))


async def test_windows(session: Session) -> None:
    made = Handwritten()
    preceding = {"preceding": {"offset": "1"}}
    bounds = {
        "boundsType": "BOUNDS_TYPE_ROWS",
        "lowerBound": preceding,
        "upperBound": {"currentRow": {}},
    }
    rel = window(made, "sum", V, sorts=[ASCENDING], **bounds)
    assert await answer(session, made.plan(rel, "a")) == [10, 30, 50, 70]
    rel = window(made, "row_number", partitions=[K], sorts=[ASCENDING])
    assert await answer(session, made.plan(rel, "a")) == [1, 1, 1, 2]
    rel = window(made, "sum", V, partitions=[K])
    assert await answer(session, made.plan(rel, "a")) == [30, 30, 30, 40]


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("sum", {"boundsType": "BOUNDS_TYPE_RANGE", "lowerBound": {"preceding": {"offset": 1}}},
         "RANGE with an offset"),
        ("sum", {"boundsType": "BOUNDS_TYPE_ROWS", "lowerBound": {"preceding": {"offset": -1}}},
         "negative"),
        ("sum", {"upperBound": {"currentRow": {}}}, "without a unit"),
        ("sum", {"invocation": "AGGREGATION_INVOCATION_DISTINCT"}, "DISTINCT"),
        ("median", {}, "'median'"),
    ],
)  # fmt: skip
def test_refused_windows(name: str, more: JsonObject, said: str, session: Session) -> None:
    made = Handwritten()
    with pytest.raises(InvalidQueryError, match=said):
        session.sql_of(NAMED, made.plan(window(made, name, V, **more), "a"))


async def test_correlated_subqueries(session: Session) -> None:
    made = Handwritten()
    same = made.call("equal", field(0), field(0, outerReference={"stepsOut": 1}))
    inner = {"filter": {"input": U_READ, "condition": same}}
    exists = {"predicateOp": "PREDICATE_OP_EXISTS", "tuples": inner}
    kept = {"filter": {"input": T_READ, "condition": {"subquery": {"setPredicate": exists}}}}
    assert await answer(session, made.plan(project(kept, emit=[1]), "a")) == [10, 20]


async def test_scalar_and_in_subqueries(session: Session) -> None:
    made = Handwritten()
    greatest = {"aggregate": {"input": U_READ, "measures": [{"measure": made.function("max", K)}]}}
    rel = project(T_READ, {"subquery": {"scalar": {"input": greatest}}}, emit=[2])
    assert await answer(session, made.plan(rel, "a")) == [9] * 4
    among = {"subquery": {"inPredicate": {"needles": [K], "haystack": U_READ}}}
    kept = {"filter": {"input": T_READ, "condition": made.call("not", among)}}
    assert await answer(session, made.plan(project(kept, emit=[1]), "a")) == [30]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ({"dynamicParameter": {"type": I64}}, "dynamic_parameter"),
        ({"nested": {"list": {"values": [K]}}}, "nested"),
        ({"multiOrList": {"value": [K]}}, "multi_or_list"),
        ({"subquery": {"setComparison": {"left": K, "right": U_READ}}}, "set_comparison"),
        ({"ifThen": {"else": K}}, "no branch"),
        ({"singularOrList": {"value": K}}, "empty"),
        ({"selection": {"directReference": {"listElement": {}}, "rootReference": {}}}, "a list"),
        (
            {"selection": {"directReference": {"structField": {"child": {"structField": {}}}},
                           "rootReference": {}}},
            "field of a struct",
        ),
        ({"selection": {"directReference": {"structField": {"field": -1}}, "rootReference": {}}},
         "column -1"),
    ],
)  # fmt: skip
def test_what_is_refused(expression: JsonObject, said: str, session: Session) -> None:
    with pytest.raises(InvalidQueryError, match=said):
        session.sql_of(NAMED, Handwritten().plan(project(T_READ, expression, emit=[2]), "a"))
