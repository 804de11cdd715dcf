"""Estimates of how many rows a condition lets pass."""

from typing import Any

import pytest
from datafusion import SessionContext

from caraway_engine.join_orders import ColumnFacts, expressions
from caraway_engine.statements import plan_nodes

KNOWN = {"t.k": ColumnFacts(100, 0, 1_000), "t.s": ColumnFacts(4), "t.d": ColumnFacts(50, 0, 100)}


def condition(text: str) -> Any:
    context = SessionContext()
    context.sql("CREATE TABLE t (k BIGINT, s TEXT, d DATE)").collect()
    plan = context.sql(f"SELECT * FROM t WHERE {text}").logical_plan()
    (found,) = (each for each in plan_nodes.nodes(plan) if each.kind == "Filter")
    return found.variant.predicate()


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("k = 7", 0.01),
        ("7 = k", 0.01),
        ("k <> 7", 0.99),
        ("s IN ('a', 'b')", 0.5),
        ("s NOT IN ('a')", 0.75),
        ("s = 'a' OR s = 'b'", 0.4375),
        ("k < 250", 0.25),
        ("250 < k", 0.75),
        ("k < 250 AND s = 'a'", 0.0625),
        ("d >= arrow_cast(25, 'Date32')", 1 / 3),
        ("s LIKE 'a%'", 0.1),
        ("s NOT LIKE 'a%'", 0.9),
        ("k IS NULL", 0.05),
        ("upper(s) = 'A'", 0.1),
    ],
)
def test_a_share_of_rows_passes(text: str, share: float) -> None:
    assert expressions.passing(condition(text), KNOWN, 1_000) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    ("text", "is_movable"),
    [("k = 7 AND s LIKE 'a%'", True), ("upper(s) = 'A'", False), ("random() < k", False)],
)
def test_conditions_with_functions_stay(text: str, is_movable: bool) -> None:
    assert expressions.is_movable(condition(text)) is is_movable
