"""Relations of plans: joins, sets, groupings and projections of reads."""

from typing import Any

import pytest
from substrait.algebra_pb2 import AggregateRel
from substrait.plan_pb2 import Plan

from caraway_core.errors import InvalidQueryError
from caraway_core.statements import Statement
from caraway_engine.sessions.sessions import Session
from tests.kit import engine
from tests.kit.client_plans import Handwritten, JsonObject, field, literal, plan, read

NAMED = Statement("-- a plan", {})
L_READ, R_READ = read("l", a="i64", b="string"), read("r", c="i64", d="string")
TABLES = {
    "l": engine.memory(a=[1, 1, 2, None], b=["x", "x", "y", None]),
    "r": engine.memory(c=[1, 3, None], d=["x", "z", None]),
}


@pytest.fixture(scope="module")
def session() -> Session:
    return engine.session(TABLES)


async def rows(of: Session, encoded: bytes) -> list[tuple[Any, ...]]:
    found = await engine.rows(of, of.sql_of(NAMED, encoded))
    return sorted((tuple(each.values()) for each in found), key=str)


@pytest.mark.parametrize(
    ("type_", "sql"),
    [
        ("INNER", "SELECT * FROM l JOIN r ON a = c"),
        ("OUTER", "SELECT * FROM l FULL JOIN r ON a = c"),
        ("LEFT", "SELECT * FROM l LEFT JOIN r ON a = c"),
        ("RIGHT", "SELECT * FROM l RIGHT JOIN r ON a = c"),
        ("LEFT_SEMI", "SELECT * FROM l WHERE EXISTS (SELECT 1 FROM r WHERE a = c)"),
        ("LEFT_ANTI", "SELECT * FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE a = c)"),
        ("RIGHT_SEMI", "SELECT * FROM r WHERE EXISTS (SELECT 1 FROM l WHERE a = c)"),
        ("RIGHT_ANTI", "SELECT * FROM r WHERE NOT EXISTS (SELECT 1 FROM l WHERE a = c)"),
    ],
)
async def test_joins(type_: str, sql: str, session: Session) -> None:
    made = Handwritten()
    same = made.call("equal", field(0), field(2))
    rel = {
        "join": {"left": L_READ, "right": R_READ, "expression": same, "type": f"JOIN_TYPE_{type_}"}
    }
    wanted = [tuple(each.values()) for each in await engine.rows(session, sql)]
    names = ["a", "b", "c", "d"][: len(wanted[0])]
    assert await rows(session, made.plan(rel, *names)) == sorted(wanted, key=str)


@pytest.mark.parametrize("type_", ["UNSPECIFIED", "LEFT_MARK", "LEFT_SINGLE"])
def test_refused_joins(type_: str, session: Session) -> None:
    rel = {"join": {"left": L_READ, "right": R_READ, "type": f"JOIN_TYPE_{type_}"}}
    with pytest.raises(InvalidQueryError, match="type of join"):
        session.sql_of(NAMED, plan(rel, "a", "b", "c", "d"))


async def test_a_table_is_joined_with_itself(session: Session) -> None:
    crossed = {"cross": {"left": L_READ, "right": {"cross": {"left": L_READ, "right": L_READ}}}}
    assert len(await rows(session, plan(crossed, *"abcdef"))) == 64


@pytest.mark.parametrize(
    ("operation", "sql"),
    [
        ("UNION_ALL", "UNION ALL"),
        ("UNION_DISTINCT", "UNION"),
        ("MINUS_PRIMARY", "EXCEPT"),
        ("MINUS_PRIMARY_ALL", "EXCEPT ALL"),
        ("INTERSECTION_PRIMARY", "INTERSECT"),
        ("INTERSECTION_MULTISET", "INTERSECT"),
        ("INTERSECTION_MULTISET_ALL", "INTERSECT ALL"),
    ],
)
async def test_sets(operation: str, sql: str, session: Session) -> None:
    rel = {"set": {"inputs": [L_READ, R_READ], "op": f"SET_OP_{operation}"}}
    statement = f"SELECT a, b FROM l {sql} SELECT c, d FROM r"
    wanted = [tuple(each.values()) for each in await engine.rows(session, statement)]
    assert await rows(session, plan(rel, "a", "b")) == sorted(wanted, key=str)


@pytest.mark.parametrize(
    ("inputs", "operation", "said"),
    [
        ([L_READ], "UNION_ALL", "number of inputs"),
        ([L_READ, R_READ, L_READ], "MINUS_PRIMARY_ALL", "number of inputs"),
        ([L_READ, R_READ], "MINUS_MULTISET", "operation of sets"),
        ([L_READ, read("r", c="i64")], "UNION_ALL", "differ"),
        ([L_READ, read("r", d="string", c="i64")], "UNION_ALL", "joins i64 and string"),
    ],
)
def test_refused_sets(
    inputs: list[JsonObject], operation: str, said: str, session: Session
) -> None:
    rel = {"set": {"inputs": inputs, "op": f"SET_OP_{operation}"}}
    with pytest.raises(InvalidQueryError, match=said):
        session.sql_of(NAMED, plan(rel, "a", "b"))


async def test_a_part_of_a_table_in_another_order(session: Session) -> None:
    rel = read("l", b="string", a="i64")
    rel["read"]["projection"] = {"select": {"structItems": [{"field": 1}]}}
    made = Handwritten()
    rel["read"]["filter"] = made.call("equal", field(0), literal(string="y"))
    assert await rows(session, made.plan(rel, "a")) == [(2,)]


async def test_rows_without_columns_are_counted(session: Session) -> None:
    rel = read("l", a="i64")
    rel["read"]["projection"] = {"select": {}}
    made = Handwritten()
    counted = {"aggregate": {"input": rel, "measures": [{"measure": made.function("count")}]}}
    assert await rows(session, made.plan(counted, "n")) == [(4,)]


def grouped(made: Handwritten, *groupings: JsonObject) -> JsonObject:
    measures = [{"measure": made.function("count")}]
    keys = [field(0), field(1)]
    return {
        "aggregate": {
            "input": L_READ,
            "groupingExpressions": keys,
            "groupings": list(groupings),
            "measures": measures,
        }
    }


async def test_keys_of_an_aggregate(session: Session) -> None:
    made = Handwritten()
    rel = grouped(made, {"expressionReferences": [0, 1]})
    found = await rows(session, made.plan(rel, "a", "b", "n"))
    assert found == [(1, "x", 2), (2, "y", 1), (None, None, 1)]


async def test_keys_as_older_producers_write_them(session: Session) -> None:
    made = Handwritten()
    rel = grouped(made, {"expressionReferences": [0, 1]})
    decoded = Plan.FromString(made.plan(rel, "a", "b", "n"))
    aggregate = decoded.relations[0].root.input.aggregate
    keys = b""
    for each in aggregate.grouping_expressions:
        encoded = each.SerializeToString()
        keys += b"\x0a" + bytes([len(encoded)]) + encoded
    del aggregate.grouping_expressions[:], aggregate.groupings[:]
    aggregate.groupings.append(AggregateRel.Grouping.FromString(keys))
    found = await rows(session, decoded.SerializeToString())
    assert found == [(1, "x", 2), (2, "y", 1), (None, None, 1)]


@pytest.mark.parametrize(
    "groupings",
    [
        [{"expressionReferences": [0]}, {"expressionReferences": [1]}],
        [{"expressionReferences": [0]}],
        [{"expressionReferences": [1, 0]}],
        [{}],
        [],
    ],
)
def test_refused_groupings(groupings: list[JsonObject], session: Session) -> None:
    made = Handwritten()
    with pytest.raises(InvalidQueryError, match="grouping"):
        session.sql_of(NAMED, made.plan(grouped(made, *groupings), "a", "b", "n"))
