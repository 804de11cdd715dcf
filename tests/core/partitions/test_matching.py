import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.partitions.hashing import bucket_of
from caraway_core.partitions.keys import PartitionBy, parse
from caraway_core.partitions.matching import Fact, colocation, matching

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int8()),
        ("region", pa.dictionary(pa.int8(), pa.string())),
        ("price", pa.decimal128(9, 2)),
        ("at", pa.timestamp("ms", "UTC")),
        ("day", pa.date32()),
        ("ratio", pa.float32()),
        ("tags", pa.list_(pa.string())),
    ]
)


def by(*terms: str) -> PartitionBy:
    return PartitionBy(tuple(map(parse, terms)))


def keys_for(*values: Any) -> list[tuple[Any, ...]]:
    return [(value,) for value in values]


@given(
    st.lists(st.integers(-50, 50), min_size=1),
    st.sampled_from([1, 3, 16]),
    st.lists(st.lists(st.integers(-50, 50) | st.none(), max_size=3), max_size=3),
)
def test_no_row_that_matches_is_in_a_partition_that_is_ruled_out(
    rows: list[int], count: int, sets: list[list[int | None]]
) -> None:
    column = pa.array(rows, pa.int64())
    terms, facts = by(f"bucket({count}, id)", "id"), [Fact("id", tuple(values)) for values in sets]
    keys = list(zip(bucket_of(column, count).to_pylist(), rows, strict=True))
    kept = matching(terms, keys, facts, SCHEMA)
    wanted = [key for key in keys if all(key[1] in fact.values for fact in facts)]
    assert kept == wanted


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", 7),
        ("small", 7),
        ("region", "north"),
        ("price", decimal.Decimal("1.5")),
        ("at", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("day", dt.date(2024, 1, 1)),
    ],
)
def test_one_value_is_in_one_bucket(column: str, value: Any) -> None:
    keys = keys_for(*range(16))
    (kept,) = matching(by(f"bucket(16, {column})"), keys, [Fact(column, (value,))], SCHEMA)
    type_ = SCHEMA.field(column).type
    stored = pa.array([value], type_.value_type if column == "region" else type_)
    assert kept == (bucket_of(stored, 16)[0].as_py(),)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", 1.0),
        ("id", "1"),
        ("id", True),
        ("id", 2**63),
        ("small", 300),
        ("region", 5),
        ("price", decimal.Decimal("1.234")),
        ("price", 1),
        ("at", dt.datetime(2024, 1, 1)),
        ("at", "2024-01-01"),
        ("day", dt.datetime(2024, 1, 1)),
        ("ratio", 0.1),
        ("tags", "a"),
        ("unknown", 1),
    ],
)
def test_values_of_other_types_rule_nothing_out(column: str, value: Any) -> None:
    # SQL may compare them after a conversion that is unknown here.
    keys = keys_for(*range(4))
    for term in (f"bucket(4, {column})", column):
        assert matching(by(term), keys, [Fact(column, (value, None))], SCHEMA) == keys


def test_columns_are_matched_by_value_and_null_equals_nothing() -> None:
    keys = keys_for("north", "south", None)
    assert matching(by("region"), keys, [Fact("region", ("south", "west"))], SCHEMA) == [("south",)]
    assert matching(by("region"), keys, [Fact("region", (None,))], SCHEMA) == []
    assert matching(by("region"), keys, [], SCHEMA) == keys


def test_all_terms_and_facts_hold_at_once() -> None:
    terms = by("region", "lower(region)", "bucket(4, id)")
    keys = [(region, "?", number) for region in ("north", "south") for number in range(4)]
    bucket = bucket_of(pa.array([7]), 4)[0].as_py()
    facts = [Fact("region", ("north",)), Fact("id", (7, 8)), Fact("id", (7,)), Fact("at", (1,))]
    assert matching(terms, keys, facts, SCHEMA) == [("north", "?", bucket)]
    assert matching(PartitionBy(), [()], facts, SCHEMA) == [()]


def test_datasets_share_a_group_when_equal_keys_have_equal_buckets() -> None:
    small = colocation(by("bucket(8, small)"), SCHEMA)
    assert small == colocation(by("bucket(8, id)"), SCHEMA) == "bucket(8) of integer"
    assert small != colocation(by("bucket(16, id)"), SCHEMA)
    assert small != colocation(by("bucket(8, region)"), SCHEMA)


@pytest.mark.parametrize("terms", [(), ("id",), ("bucket(8, id)", "region"), ("bucket(1, id)",)])
def test_other_cuts_share_no_group(terms: tuple[str, ...]) -> None:
    assert colocation(by(*terms), SCHEMA) is None


def test_equal_keys_of_a_group_join_within_buckets() -> None:
    left, right = pa.array(range(100), pa.int8()), pa.array(range(100), pa.uint64())
    assert pc.all(pc.equal(bucket_of(left, 8), bucket_of(right, 8))).as_py()
