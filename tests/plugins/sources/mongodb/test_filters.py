"""The filters that MongoDB is sent."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from bson.objectid import ObjectId

from caraway_core.tables.scanners import ColumnFilter, FilterOperator
from caraway_plugins.sources.mongodb import filters
from caraway_plugins.sources.mongodb.filters import MongoColumns

SCHEMA = pa.schema(
    {
        "_id": pa.string(),
        "n": pa.int64(),
        "any": pa.string(),
        "is_on": pa.bool_(),
        "at": pa.timestamp("ms", "UTC"),
        "local": pa.timestamp("us"),
        "price": pa.decimal128(12, 2),
        "raw": pa.binary(),
        "day": pa.date32(),
        "tags": pa.list_(pa.string()),
        "a.b": pa.int64(),
        "$where": pa.string(),
    }
)
COLUMNS = MongoColumns(SCHEMA, frozenset({"any"}))
ID = "0123456789abcdef01234567"
MOMENT = datetime(2024, 1, 1, 12, 0, 0, 123_000, UTC)


@pytest.mark.parametrize(
    ("column", "operator", "value", "condition"),
    [
        ("n", "=", 5, {"n": {"$in": [5]}}),
        ("n", "<>", 5, {"n": {"$nin": [5]}}),
        ("n", "<=", 5, {"n": {"$lte": 5}}),
        ("n", "in", (1, 2), {"n": {"$in": [1, 2]}}),
        ("_id", "=", ID, {"_id": {"$in": [ID, ObjectId(ID)]}}),
        ("_id", "=", ID.upper(), {"_id": {"$in": [ID.upper()]}}),
        ("_id", ">", ID, {"$or": [{"_id": {"$gt": ID}}, {"_id": {"$gt": ObjectId(ID)}}]}),
        ("_id", ">", "x", {"$or": [{"_id": {"$gt": "x"}}, {"_id": {"$type": "objectId"}}]}),
        ("any", "=", "x", {"any": {"$in": ["x"]}}),
        ("is_on", "<>", True, {"is_on": {"$nin": [True]}}),
        ("at", ">=", MOMENT, {"$or": [{"at": {"$gte": MOMENT}}, {"at": {"$type": "string"}}]}),
        ("local", "<", MOMENT.replace(tzinfo=None),
         {"$or": [{"local": {"$lt": MOMENT}}, {"local": {"$type": "string"}}]}),
        ("tags", "is not null", None, {"tags": {"$exists": True}}),
    ],
)  # fmt: skip
def test_filters(column: str, operator: FilterOperator, value: Any, condition: Any) -> None:
    assert filters.filter_of(COLUMNS, [ColumnFilter(column, operator, value)]) == condition


@pytest.mark.parametrize(
    ("column", "operator", "value"),
    [
        ("n", "is null", None),
        ("n", "=", 2**63),
        ("n", "in", tuple(range(2_000))),
        ("any", ">", "x"),
        ("any", "<>", "x"),
        ("any", "=", "12"),
        ("any", "=", '{"a": 1}'),
        ("any", "=", "[" * 100_000),
        ("is_on", ">", False),
        ("at", "=", MOMENT.replace(microsecond=123_456)),
        ("price", "=", Decimal("1.5")),
        ("raw", "=", b"x"),
        ("day", "=", date(2024, 1, 1)),
        ("a.b", "=", 1),
        ("$where", "=", "sleep(10000)"),
    ],
)
def test_filters_that_stay_with_the_engine(
    column: str, operator: FilterOperator, value: Any
) -> None:
    assert filters.filter_of(COLUMNS, [ColumnFilter(column, operator, value)]) == {}


def test_texts_of_a_collation_are_not_compared() -> None:
    columns = MongoColumns(SCHEMA, frozenset(), is_collated=True)
    asked = [ColumnFilter("_id", "=", "x"), ColumnFilter("n", "=", 1)]
    assert filters.filter_of(columns, asked) == {"n": {"$in": [1]}}


def test_several_filters_are_all_sent() -> None:
    asked = [ColumnFilter("n", ">", 1), ColumnFilter("n", "<", 3)]
    assert filters.filter_of(COLUMNS, asked) == {"$and": [{"n": {"$gt": 1}}, {"n": {"$lt": 3}}]}


@pytest.mark.parametrize(
    ("names", "projection"),
    [
        (["a"], {"_id": 0, "a": 1}),
        (["_id", "a"], {"_id": 1, "a": 1}),
        (["a", "b.c"], None),
        (["$a"], None),
        ([""], None),
        (None, None),
    ],
)
def test_projections(names: Any, projection: Any) -> None:
    assert filters.projection_of(names) == projection
