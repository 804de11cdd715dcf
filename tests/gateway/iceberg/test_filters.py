"""Filters become conditions that let all rows through that the filters do."""

from typing import Any

import pytest

from caraway_core.errors import InvalidRequestError
from caraway_gateway.iceberg import filters

KINDS = {
    "n": "long", "d": "double", "f": "float", "s": "string", "b": "boolean",
    "day": "date", "at": "timestamp", "tz": "timestamptz", "p": "decimal(9, 2)", 'q"': "int",
}  # fmt: skip


def of(kind: str, term: Any, value: Any = None) -> dict[str, Any]:
    return {"type": kind, "term": term, "value": value}


def both(kind: str, left: Any, right: Any) -> dict[str, Any]:
    return {"type": kind, "left": left, "right": right}


def no(child: Any) -> dict[str, Any]:
    return {"type": "not", "child": child}


LESS, MORE = of("lt", "n", 5), of("gt", "d", 1.5)
HOW_LONG = of("eq", {"type": "transform", "transform": "truncate[2]", "term": "s"}, "ab")
KNOWN: list[tuple[Any, str]] = [
    (True, ""),
    ({"type": "false"}, "false"),
    (no({"type": "true"}), "false"),
    (LESS, '"n" < (5)'),
    (of("gt-eq", {"type": "reference", "term": "n"}, -5), '"n" >= (-5)'),
    (of("eq", 'q"', 1), '"q""" = (1)'),
    (of("eq", "s", "it's"), "\"s\" = 'it''s'"),
    (of("starts-with", "s", "a%"), "starts_with(\"s\", 'a%')"),
    (of("eq", "b", True), '"b" = True'),
    (of("lt-eq", "day", "2024-02-01"), "\"day\" <= CAST('2024-02-01' AS DATE)"),
    (of("gt", "p", "1.50"), "\"p\" > CAST('1.50' AS decimal(9, 2))"),
    (of("gt-eq", "at", "2024-02-01T00:00"), "\"at\" >= CAST('2024-02-01T00:00' AS TIMESTAMP)"),
    (of("is-null", "s"), '"s" IS NULL'),
    (no(of("is-null", "s")), '"s" IS NOT NULL'),
    (of("not-eq", "n", 5), '("n" <> (5) OR "n" IS NULL)'),
    (no(of("eq", "n", 5)), '("n" <> (5) OR "n" IS NULL)'),
    ({"type": "in", "term": "n", "values": [1, 2]}, '"n" IN ((1), (2))'),
    ({"type": "not-in", "term": "n", "values": [1]}, '("n" NOT IN ((1)) OR "n" IS NULL)'),
    (both("and", LESS, MORE), '"n" < (5) AND "d" > (1.5)'),
    (both("or", LESS, MORE), '(("n" < (5)) OR ("d" > (1.5)))'),
    (no(both("or", LESS, MORE)), '"n" >= (5) AND "d" <= (1.5)'),
]  # fmt: skip
WEAKER: list[tuple[Any, str]] = [
    (HOW_LONG, ""),
    (both("and", LESS, HOW_LONG), '"n" < (5)'),
    (both("or", LESS, HOW_LONG), ""),
    (no(both("and", LESS, HOW_LONG)), ""),
    (of("eq", "f", 0.1), ""),
    (of("eq", "at", "2024-02-01T00:00:00"), ""),
    (of("lt-eq", "at", "2024-02-01T00:00:00"), ""),
    (of("lt", "tz", "2024-02-01T00:00:00+00:00"), ""),
    (of("is-nan", "d"), ""),
    (of("not-starts-with", "s", "a"), ""),
    (of("eq", "n", "5"), ""),
    (of("eq", "n", 2**80), ""),
    (of("eq", "d", float("nan")), ""),
    (of("eq", "day", "x'); DROP TABLE t; --"), ""),
    (of("eq", "unknown", 5), ""),
    ({"type": "in", "term": "n", "values": [1, "x"]}, ""),
    ({"type": "in", "term": "n", "values": []}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "wanted"), KNOWN, ids=str)
def test_filters_become_conditions(expression: Any, wanted: str) -> None:
    assert filters.condition(expression, KINDS) == wanted


@pytest.mark.parametrize(("expression", "wanted"), WEAKER, ids=str)
def test_what_sql_would_judge_otherwise_is_left_to_clients(expression: Any, wanted: str) -> None:
    assert filters.condition(expression, KINDS) == wanted


def test_columns_of_filters_are_found() -> None:
    assert filters.columns(both("and", no(LESS), both("or", HOW_LONG, of("eq", "a.b", 1)))) == {
        "n", "s", "a.b",
    }  # fmt: skip
    assert filters.columns(True) == frozenset()


@pytest.mark.parametrize(
    "expression",
    [None, 5, "n < 5", [], {}, {"type": []},
     {"type": "in", "term": "n", "values": 5}, {"type": "like", "term": "s"},
     {"type": "eq", "value": 1},
     both("and", LESS, None), no({"type": "lt", "term": {"type": "reference"}})],
)  # fmt: skip
def test_what_is_no_filter_is_refused(expression: Any) -> None:
    with pytest.raises(InvalidRequestError, match="'filter' has"):
        filters.columns(expression)


def test_filters_that_are_too_long_for_sql_are_left_to_clients() -> None:
    deep: Any = LESS
    for _ in range(5_000):
        deep = no(deep)
    assert filters.columns(deep) == {"n"}
    assert filters.condition(both("and", deep, MORE), KINDS) == '"d" > (1.5)'
    chain: Any = LESS
    for _ in range(400):
        chain = both("or", chain, MORE)
    assert filters.condition(chain, KINDS).count(" OR ") == 400
    for _ in range(5_000):
        chain = both("or", LESS, chain)
    assert filters.condition(chain, KINDS) == ""
    assert filters.columns(chain) == {"n", "d"}
    many = {"type": "in", "term": "n", "values": list(range(100_000))}
    assert filters.condition(many, KINDS) == ""
