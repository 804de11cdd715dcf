import datetime as dt
import decimal
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.partitions import hashing
from caraway_core.partitions.hashing import bucket_of, family

MASK = (1 << 64) - 1
GOLDEN_INTEGERS = [883310, 566561, 893942, 741564, 165646]
GOLDEN_TEXTS = [883310, 941141, 160890, 685693]
GOLDEN_FLOATS = [839274, 883310]
GOLDEN_BOOLEANS = [566561, 883310]
GOLDEN_DECIMALS = [522877, 102540]
GOLDEN_TIMES = [29020]


def mixed(word: int) -> int:
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def expected(word: int | None, count: int) -> int:
    return 0 if word is None else ((mixed(word) >> 32) * count) >> 32


def of_bytes(content: bytes) -> int:
    word = 0
    for byte in reversed(content):
        word = (word * 0xD1342543DE82EF95 + byte + 1) & MASK
    return word


def of_float(number: float) -> int:
    if number != number:
        return 0x7FF8 << 48
    return int.from_bytes(struct.pack(">d", number + 0.0))


def buckets(values: list[Any], type_: pa.DataType, count: int = 1_000_000) -> list[int]:
    found: list[int] = bucket_of(pa.array(values, type_), count).to_pylist()
    return found


COUNTS = st.sampled_from([1, 2, 7, 64, 1_000_000])


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), COUNTS, st.integers(0, 3))
def test_integers_are_hashed_as_written_down(
    values: list[int | None], count: int, start: int
) -> None:
    found = bucket_of(pa.array(values, pa.int64()).slice(start), count)
    words = [None if value is None else value & MASK for value in values[start:]]
    assert found.to_pylist() == [expected(word, count) for word in words]
    assert found.type == pa.int32()


@given(st.lists(st.none() | st.binary()), COUNTS, st.integers(0, 3))
def test_bytes_are_hashed_as_written_down(
    values: list[bytes | None], count: int, start: int
) -> None:
    words = [None if value is None else of_bytes(value) for value in values[start:]]
    for type_ in (pa.binary(), pa.large_binary(), pa.binary_view()):
        found = bucket_of(pa.array(values, type_).slice(start), count)
        assert found.to_pylist() == [expected(word, count) for word in words]


@given(st.lists(st.none() | st.text()))
def test_texts_of_all_layouts_are_hashed_alike(values: list[str | None]) -> None:
    words = [None if value is None else of_bytes(value.encode()) for value in values]
    wanted = [expected(word, 1_000_000) for word in words]
    for type_ in (pa.string(), pa.large_string(), pa.string_view()):
        assert buckets(values, type_) == wanted
    coded = pa.array(values, pa.string()).dictionary_encode()
    assert bucket_of(coded, 1_000_000).to_pylist() == wanted


@given(st.lists(st.none() | st.floats()))
def test_floats_are_hashed_as_written_down(values: list[float | None]) -> None:
    words = [None if value is None else of_float(value) for value in values]
    assert buckets(values, pa.float64()) == [expected(word, 1_000_000) for word in words]


@pytest.mark.parametrize("size", [0, 1, 2**18 - 1, 2**18, 2**18 + 1, 2**20 + 3])
def test_long_values_among_short_ones(size: int) -> None:
    values = [b"a", bytes(range(256)) * (size // 256) + b"x" * (size % 256), None, b"b"]
    words = [None if value is None else of_bytes(value) for value in values]
    assert buckets(values, pa.binary()) == [expected(word, 1_000_000) for word in words]


@pytest.mark.parametrize(
    ("values", "types"),
    [
        ([0, 1, 100, None], [getattr(pa, f"{u}int{n}")() for u in ("", "u") for n in (8, 16, 32)]),
        ([-1, -128], [pa.int8(), pa.int16(), pa.int32(), pa.int64()]),
        ([2**63, 1], [pa.uint64()]),
        ([0.5, -0.25, None], [pa.float16(), pa.float32(), pa.float64()]),
        (
            [dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 2, 29), None],
            [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")],
        ),
        (
            [dt.time(23, 59, 59)],
            [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
        ),
        ([dt.timedelta(seconds=-5)], [pa.duration(unit) for unit in ("s", "ms", "us", "ns")]),
        ([dt.date(1969, 1, 1), dt.date(2024, 2, 29)], [pa.date32(), pa.date64()]),
        (
            [decimal.Decimal("-1.50"), decimal.Decimal("3"), None],
            [pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(38, 2), pa.decimal256(20, 2)],
        ),
        ([b"ab"], [pa.binary(2), pa.binary()]),
    ],
)
def test_equal_values_of_a_family_are_hashed_alike(
    values: list[Any], types: list[pa.DataType]
) -> None:
    assert len({tuple(buckets(values, type_)) for type_ in types}) == 1
    assert len({family(type_) for type_ in types}) == 1


def test_zeros_are_one_and_so_are_nans() -> None:
    assert len({*buckets([0.0, -0.0], pa.float64())}) == 1
    assert len({*buckets([float("nan"), -float("nan")], pa.float64())}) == 1


def test_null_is_in_bucket_zero() -> None:
    for type_ in (pa.int8(), pa.string(), pa.bool_(), pa.date32(), pa.decimal256(50, 2), pa.null()):
        assert buckets([None, None], type_) == [0, 0]


def test_hash_never_changes() -> None:
    # Files on disk are partitioned by it. If this fails, the hash needs a new name.
    assert buckets([0, 1, -1, 42, 2**63 - 1], pa.int64()) == GOLDEN_INTEGERS
    assert buckets(["", "a", "caraway", "ü"], pa.string()) == GOLDEN_TEXTS
    assert buckets([1.5, 0.0], pa.float64()) == GOLDEN_FLOATS
    assert buckets([True, False], pa.bool_()) == GOLDEN_BOOLEANS
    money = [decimal.Decimal("1.50"), decimal.Decimal("-3.25")]
    assert buckets(money, pa.decimal128(10, 2)) == GOLDEN_DECIMALS
    assert buckets([dt.datetime(2024, 2, 29)], pa.timestamp("us")) == GOLDEN_TIMES


@given(st.lists(st.integers(0, 2**40)), st.integers(1, 1000))
def test_buckets_nest(values: list[int], count: int) -> None:
    coarse, fine = buckets(values, pa.int64(), count), buckets(values, pa.int64(), 2 * count)
    assert coarse == [number // 2 for number in fine]


@pytest.mark.parametrize(
    "value", [lambda n: n, lambda n: n << 32, lambda n: f"key-{n}", lambda n: float(n)]
)
def test_buckets_are_even(value: Callable[[int], Any]) -> None:
    sizes = Counter(bucket_of(pa.array([value(n) for n in range(64_000)]), 64).to_pylist())
    assert len(sizes) == 64
    assert 850 < min(sizes.values()) <= max(sizes.values()) < 1150


def test_chunks_are_joined() -> None:
    chunked = pa.chunked_array([["a", "b"], [], ["c"]], pa.string())
    assert bucket_of(chunked, 99).to_pylist() == buckets(["a", "b", "c"], pa.string(), 99)
    assert len(bucket_of(pa.chunked_array([], pa.string()), 9)) == 0


@pytest.mark.parametrize(
    "type_", [pa.list_(pa.int8()), pa.struct([]), pa.month_day_nano_interval()]
)
def test_what_has_no_bucket(type_: pa.DataType) -> None:
    with pytest.raises(ValueError, match="cannot be put in buckets; choose another column"):
        bucket_of(pa.array([], type_), 2)


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(), st.binary())))
def test_one_value_is_hashed_as_in_an_array(values: list[int | str | bytes]) -> None:
    for value in values:
        (found,) = hashing.hash64(pa.array([value])).to_pylist()
        assert hashing.hash64_of(value) == found
        for count in (1, 7, 1000):
            bucket = hashing.bucket_of(pa.array([value]), count)[0].as_py()
            assert hashing.bucket_of_hash(found, count) == bucket
