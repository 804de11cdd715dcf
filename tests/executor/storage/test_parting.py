from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import ExecutionError
from caraway_core.partitions.hashing import bucket_of
from caraway_core.partitions.keys import ByExpression, PartitionBy, parse
from caraway_core.partitions.naming import values_of
from caraway_executor.storage.parting import Parting

FLOATS = [None, 0.0, -0.0, 1.5, float("nan")]


def by(*terms: str) -> PartitionBy:
    return PartitionBy(tuple(map(parse, terms)))


def parted(cut: PartitionBy, rows: pa.RecordBatch) -> dict[tuple[Any, ...], list[Any]]:
    """Return what column `n` holds in each partition."""
    found = [(values_of(name), part) for name, part in Parting(cut, rows.schema).parts(rows)]
    assert len({name for name, _ in found}) == len(found)
    return {name: part["n"].to_pylist() for name, part in found}


@given(
    st.lists(st.tuples(st.none() | st.integers(-9, 9), st.sampled_from("abc"), st.booleans())),
    st.sampled_from([1, 3, 64]),
)
def test_rows_are_where_their_values_say_and_in_order(
    rows: list[tuple[int | None, str, bool]], count: int
) -> None:
    batch = pa.record_batch(
        {
            "n": pa.array(range(len(rows))),
            "k": pa.array([row[0] for row in rows], pa.int32()),
            "s": pa.array([row[1] for row in rows]),
            "even": pa.array([row[2] for row in rows]),
        }
    )
    buckets = bucket_of(batch["k"], count).to_pylist()
    expected: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, (bucket, row) in enumerate(zip(buckets, rows, strict=True)):
        expected[bucket, row[1], row[0], row[2]].append(number)
    cut = by(f"bucket({count}, k)", "s", "k", "k % 2 = 0")
    assert isinstance(cut.terms[-1], ByExpression)
    assert parted(cut, batch) == expected


def test_the_values_of_expressions_are_not_stored() -> None:
    batch = pa.record_batch({"n": [1, 2, 3], "year": [7, 8, 7], "lower": ["x", "x", "x"]})
    parts = dict(Parting(by("date_part(n)", "lower(n)"), batch.schema).parts(batch))
    assert parts.keys() == {'[7,"x"]', '[8,"x"]'}
    assert parts['[7,"x"]'].schema.names == ["n"]
    assert parts['[7,"x"]']["n"].to_pylist() == [1, 3]


def test_what_sql_holds_for_equal_is_in_one_partition() -> None:
    batch = pa.record_batch({"n": range(5), "f": pa.array(FLOATS)})
    assert parted(by("f"), batch) == {(None,): [0], (0.0,): [1, 2], (1.5,): [3], ("nan",): [4]}
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2]), pa.array(["a", "a", None]))
    batch = pa.record_batch({"n": range(4), "d": twice})
    assert parted(by("d"), batch) == {("a",): [0, 1], (None,): [2, 3]}


def test_a_part_holds_no_memory_of_the_others() -> None:
    batch = pa.record_batch({"n": range(10_000), "s": ["x" * 100] * 10_000})
    parts = [part for _, part in Parting(by("bucket(100, n)"), batch.schema).parts(batch)]
    held = sum(part.get_total_buffer_size() for part in parts)
    assert len(parts) == 100
    assert parts[0].get_total_buffer_size() < held / 50


@pytest.mark.parametrize(
    ("terms", "cause"),
    [
        (["gone"], "it has no columns 'gone'"),
        (["bucket(2, l)"], "list<item: int64> cannot be put in buckets"),
        (["lower(n)", "lower(l)"], "not those of the partition expressions"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(terms: list[str], cause: str) -> None:
    batch = pa.record_batch({"n": [1], "l": pa.array([[1]])})
    with pytest.raises(ExecutionError, match=cause):
        list(Parting(by(*terms), batch.schema).parts(batch))
