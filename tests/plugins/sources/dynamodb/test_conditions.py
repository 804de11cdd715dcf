"""The requests that DynamoDB is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.tables.scanners import ColumnFilter, FilterOperator
from caraway_plugins.sources.dynamodb import conditions
from caraway_plugins.sources.dynamodb.conditions import (
    ItemColumns,
    ItemKey,
    KeyAttribute,
    SecondaryIndex,
)

COLUMNS = ItemColumns(
    pa.schema(
        {
            "pk": pa.string(),
            "sk": pa.int64(),
            "name": pa.string(),
            "any": pa.string(),
            "price": pa.decimal128(12, 2),
            "is_on": pa.bool_(),
            "raw": pa.binary(),
            "day": pa.date32(),
        }
    ),
    frozenset({"pk", "any"}),
    ItemKey(KeyAttribute("pk", "S"), KeyAttribute("sk", "N")),
)
Test = tuple[str, FilterOperator, Any]


def _request(
    filters: Sequence[Test], names: Sequence[str] | None = None, limit: int | None = None
) -> tuple[str, Mapping[str, Any]]:
    request = conditions.request_of(
        COLUMNS, [ColumnFilter(*each) for each in filters], names, limit
    )
    assert request is not None
    return request


def _read(expression: str, request: Mapping[str, Any]) -> str:
    """Return an expression with names and values in place of their placeholders."""
    for at, value in reversed(request.get("ExpressionAttributeValues", {}).items()):
        expression = expression.replace(at, repr(next(iter(value.values()))))
    for at, name in reversed(request.get("ExpressionAttributeNames", {}).items()):
        expression = expression.replace(at, name)
    return expression


@pytest.mark.parametrize(
    ("filters", "condition", "rest"),
    [
        ([("pk", "=", "a")], "pk = 'a'", ""),
        ([("pk", "=", "a"), ("sk", "=", 1)], "pk = 'a' AND sk BETWEEN '1' AND '1'", ""),
        ([("sk", ">", 1), ("pk", "=", "a")], "pk = 'a' AND sk >= '1'", ""),
        (
            [("pk", "=", "a"), ("sk", ">=", 1), ("sk", "<", 9), ("sk", "<", 5)],
            "pk = 'a' AND sk BETWEEN '1' AND '5'",
            "",
        ),
        ([("pk", "=", "a"), ("sk", "<>", 1)], "pk = 'a'", ""),
        ([("pk", "=", "a"), ("name", "=", "x")], "pk = 'a'", "name = 'x'"),
    ],
)
def test_queries(filters: Sequence[Test], condition: str, rest: str) -> None:
    operation, request = _request(filters)
    assert operation == "query"
    assert _read(request["KeyConditionExpression"], request) == condition
    assert _read(request.get("FilterExpression", ""), request) == rest


@pytest.mark.parametrize(
    ("filter_", "expression"),
    [
        (("pk", ">", "a"), "pk > 'a'"),
        (("name", "<>", "a"), "name <> 'a'"),
        (("name", "in", ("a", "b")), "name IN ('a', 'b')"),
        (("any", "<", "a"), "(NOT attribute_type(any, 'S') OR any < 'a')"),
        (("price", "=", Decimal("1.50")), "(attribute_type(price, 'S') OR price = '1.50')"),
        (("is_on", "=", True), "is_on = True"),
        (("raw", "=", b"x"), "raw = b'x'"),
        (("name", "is null", None),
         "(attribute_not_exists(name) OR attribute_type(name, 'NULL'))"),
        (("name", "is not null", None),
         "(attribute_exists(name) AND NOT attribute_type(name, 'NULL'))"),
    ],
)  # fmt: skip
def test_filters_of_scans(filter_: Test, expression: str) -> None:
    operation, request = _request([filter_])
    assert operation == "scan"
    assert _read(request["FilterExpression"], request) == expression


@pytest.mark.parametrize(
    "filter_",
    [
        ("day", "=", date(2024, 1, 1)),
        ("is_on", "<", True),
        ("raw", ">", b"x"),
        ("name", "in", ()),
        ("name", "in", tuple(map(str, range(101)))),
        ("name", "=", "x" * 200_000),
    ],
)
def test_filters_that_stay_with_the_engine(filter_: Test) -> None:
    assert _request([filter_], limit=3) == ("scan", {})


@pytest.mark.parametrize(
    "filters",
    [
        [("pk", "=", "")],
        [("pk", "=", "ä" * 1_025)],
        [("pk", "=", "a"), ("sk", ">", 5), ("sk", "<", 3)],
    ],
)
def test_keys_that_no_item_has(filters: Sequence[Test]) -> None:
    asked = [ColumnFilter(*each) for each in filters]
    assert conditions.request_of(COLUMNS, asked, None, None) is None


def test_names_and_values_are_no_part_of_expressions() -> None:
    hostile = "x) OR attribute_exists(pk"
    columns = ItemColumns(
        pa.schema({"pk": pa.string(), hostile: pa.string()}),
        frozenset(),
        ItemKey(KeyAttribute("pk", "S")),
    )
    asked = [ColumnFilter(hostile, "=", "y' OR '1'='1")]
    request = conditions.request_of(columns, asked, [hostile], None)
    assert request is not None
    assert request[1]["FilterExpression"] == "#n0 = :v0"
    assert request[1]["ProjectionExpression"] == "#n0, #n1"


@pytest.mark.parametrize(
    ("filters", "limit"),
    [
        ([], 3),
        ([("pk", "=", "a"), ("sk", ">=", 1)], 3),
        ([("pk", "=", "a"), ("sk", "in", (1, 2))], None),
        ([("name", "=", "a")], None),
        ([("day", "=", date(2024, 1, 1))], None),
    ],
)
def test_limits(filters: Sequence[Test], limit: int | None) -> None:
    assert _request(filters, limit=3)[1].get("Limit") == limit


def test_long_expressions_are_cut() -> None:
    many: list[Test] = [("name", "<>", str(number)) for number in range(1_000)]
    request = _request(many)[1]
    assert 3_000 < len(request["FilterExpression"]) <= 4_000
    used = request["FilterExpression"].count(":v")
    assert used == len(request["ExpressionAttributeValues"])
    assert "ProjectionExpression" not in _request([], [f"c{number}" for number in range(600)])[1]


BY_NAME = SecondaryIndex("by_name", ItemKey(KeyAttribute("name", "S")))
BY_BOTH = SecondaryIndex("by_both", ItemKey(KeyAttribute("name", "S"), KeyAttribute("raw", "B")))
KEYS = SecondaryIndex("keys", BY_NAME.key, frozenset({"pk", "sk", "name"}))
LOCAL = SecondaryIndex("local", ItemKey(COLUMNS.key.partition, KeyAttribute("name", "S")))
BY_ANY = SecondaryIndex("by_any", ItemKey(KeyAttribute("any", "S")))
BY_PRICE = SecondaryIndex("by_price", ItemKey(KeyAttribute("price", "N")))
OF_NAME: Test = ("name", "=", "x")


@pytest.mark.parametrize(
    ("index", "filters", "names", "condition"),
    [
        (BY_NAME, [OF_NAME, ("is_on", "=", True)], None, "name = 'x'"),
        (BY_NAME, [OF_NAME, ("sk", ">", 1)], None, "name = 'x'"),
        (BY_BOTH, [OF_NAME, ("raw", "=", b"a")], None, "name = 'x' AND raw BETWEEN b'a' AND b'a'"),
        (KEYS, [OF_NAME], ["sk"], "name = 'x'"),
        (LOCAL, [("pk", "=", "p"), ("name", ">=", "x")], None, "pk = 'p' AND name >= 'x'"),
        # Items without an attribute of its key are in no index.
        (BY_BOTH, [OF_NAME], None, None),
        (BY_NAME, [("name", ">", "x")], None, None),
        (BY_NAME, [("name", "=", "")], None, None),
        # Attributes that an index lacks.
        (KEYS, [OF_NAME], None, None),
        (KEYS, [OF_NAME], ["day"], None),
        (KEYS, [OF_NAME, ("is_on", "=", True)], ["sk"], None),
        # Values of other types are values of these columns, and in no index.
        (BY_ANY, [("any", "=", "1")], None, None),
        (BY_PRICE, [("price", "=", Decimal("1.50"))], None, None),
        # The key of the table is better.
        (BY_NAME, [OF_NAME, ("pk", "=", "p")], None, None),
        (LOCAL, [OF_NAME, ("pk", "=", "p"), ("sk", "=", 1)], None, None),
    ],
)
def test_indexes(
    index: SecondaryIndex,
    filters: Sequence[Test],
    names: Sequence[str] | None,
    condition: str | None,
) -> None:
    columns = replace(COLUMNS, texts=frozenset({"any"}))
    asked = [ColumnFilter(*each) for each in filters]
    found = conditions.request_of(columns, asked, names, None, [index])
    assert found is not None
    assert found[1].get("IndexName") == (index.name if condition else None)
    if condition:
        assert found[0] == "query"
        assert _read(found[1]["KeyConditionExpression"], found[1]) == condition
        rest = _read(found[1].get("FilterExpression", ""), found[1])
        assert not any(f"{each} " in rest for each in (*index.key.names, "pk", "sk"))
