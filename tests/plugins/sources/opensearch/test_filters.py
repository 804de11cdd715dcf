"""The conditions that a search is sent."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.tables.scanners import ColumnFilter, FilterOperator
from caraway_plugins.sources.opensearch import filters
from caraway_plugins.sources.opensearch.rules import FieldRule

SCHEMA = pa.schema(
    {
        "_id": pa.string(), "k": pa.string(), "short": pa.string(), "lower": pa.string(),
        "n": pa.int32(), "is_on": pa.bool_(), "at": pa.timestamp("us", "UTC"), "day": pa.date32(),
        "local": pa.timestamp("us"), "price": pa.decimal128(9, 2), "ip": pa.string(),
        "tags": pa.list_(pa.string()), "as_text": pa.string(), "other": pa.string(),
    }
)  # fmt: skip
RULES = (
    FieldRule("k", "k", "keyword", fills_nulls=True),
    FieldRule("short", "short.raw", "keyword", most_chars=3),
    FieldRule("lower", "lower", "keyword", is_normalized=True),
    FieldRule("n", "n", "integer", 32),
    FieldRule("is_on", "is_on", "boolean"),
    FieldRule("at", "at", "date"),
    FieldRule("local", "local", "date"),
    FieldRule("day", "day", "date"),
    FieldRule("price", "price", "double"),
    FieldRule("ip", "ip", "ip"),
    FieldRule("tags", "tags", "keyword"),
    FieldRule("as_text", "as_text", "integer", 64),
)
MOMENT = datetime(2024, 1, 1, 12, 0, 0, 123_456, timezone(timedelta(hours=1)))
WRITTEN = "2024-01-01T11:00:00.123Z"
ISO = {"format": "strict_date_optional_time"}


@pytest.mark.parametrize(
    ("column", "operator", "value", "condition"),
    [
        ("_id", "in", ("1", "2"), {"ids": {"values": ["1", "2"]}}),
        ("k", "=", "x", {"terms": {"k": ["x"]}}),
        ("k", "<>", "x", {"bool": {"must_not": [{"terms": {"k": ["x"]}}]}}),
        ("k", "<", "x", {"range": {"k": {"lt": "x"}}}),
        ("k", "is not null", None, {"exists": {"field": "k"}}),
        ("short", "=", "abc", {"terms": {"short.raw": ["abc"]}}),
        ("short", "<>", "abcd", {"bool": {"must_not": [{"terms": {"short.raw": ["abcd"]}}]}}),
        ("short", ">=", "b", {"bool": {"should": [
            {"range": {"short.raw": {"gte": "b"}}},
            {"bool": {"must_not": [{"exists": {"field": "short.raw"}}]}},
        ]}}),
        ("short", "is null", None,
         {"bool": {"must_not": [{"exists": {"field": "short.raw"}}]}}),
        ("lower", "in", ("A",), {"terms": {"lower": ["A"]}}),
        ("n", "=", 5, {"terms": {"n": [5]}}),
        ("n", "<=", 5, {"range": {"n": {"lte": 5}}}),
        ("n", "is null", None, {"bool": {"must_not": [{"exists": {"field": "n"}}]}}),
        ("is_on", "<>", True, {"bool": {"must_not": [{"terms": {"is_on": [True]}}]}}),
        ("at", "=", MOMENT, {"range": {"at": {"gte": WRITTEN, "lte": WRITTEN, **ISO}}}),
        ("at", "<", MOMENT, {"range": {"at": {"lte": WRITTEN, **ISO}}}),
        ("local", ">", MOMENT.astimezone(UTC).replace(tzinfo=None),
         {"range": {"local": {"gte": WRITTEN, **ISO}}}),
        ("day", "in", (date(2024, 1, 2), date(1, 1, 1)),
         {"range": {"day": {"gte": "0001-01-01T00:00:00.000Z", "lte": "2024-01-02T00:00:00.000Z",
                            **ISO}}}),
        ("price", "<", Decimal("1.10"), {"range": {"price": {"lte": 1.1}}}),
        ("ip", "=", "::1", {"terms": {"ip": ["::1"]}}),
    ],
)  # fmt: skip
def test_filters(column: str, operator: FilterOperator, value: Any, condition: Any) -> None:
    asked = [ColumnFilter(column, operator, value)]
    assert filters.conditions_of(SCHEMA, RULES, asked) == [condition]


@pytest.mark.parametrize(
    ("column", "operator", "value"),
    [
        ("_id", ">", "1"),
        ("_id", "is null", None),
        ("k", "is null", None),
        ("k", "in", tuple(map(str, range(2_000)))),
        ("short", "=", "abcd"),
        ("short", "=", "\U0001f600\U0001f600"),
        ("short", "is not null", None),
        ("lower", "<>", "a"),
        ("lower", "<", "a"),
        ("n", "=", 2**31),
        ("n", ">", -(2**31) - 1),
        ("is_on", ">", False),
        ("at", "<>", MOMENT),
        ("ip", "=", "nowhere"),
        ("ip", "<>", "::1"),
        ("ip", "is not null", None),
        ("tags", "is not null", None),
        ("as_text", "=", "1"),
        ("other", "=", "1"),
    ],
)
def test_filters_that_stay_with_the_engine(
    column: str, operator: FilterOperator, value: Any
) -> None:
    assert filters.conditions_of(SCHEMA, RULES, [ColumnFilter(column, operator, value)]) == []
