"""Keys of rows and their index, held against dictionaries."""

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.rows import keyed
from caraway_engine.rows.keyed import KeyIndex

NAN, INF = math.nan, math.inf


def array(values: Sequence[Any], type_: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, type_)


@pytest.mark.parametrize(
    ("values", "type_", "groups"),
    [
        ([1, 2, 1, -1, 2**63 - 1, -(2**63)], pa.int64(), [0, 1, 0, 3, 4, 5]),
        ([0, 2**64 - 1, 0], pa.uint64(), [0, 1, 0]),
        (["", "a", "A", "a ", "ä", "a\u0308", "a"], pa.string(), [0, 1, 2, 3, 4, 5, 1]),
        (["", "a", "a"], pa.string_view(), [0, 1, 1]),
        ([b"", b"\x00", b"\x00\x00", b"\x00"], pa.binary(), [0, 1, 2, 1]),
        ([0.0, -0.0, NAN, -NAN, INF, -INF, 0.1], pa.float64(), [0, 0, 2, 2, 4, 5, 6]),
        ([0.0, -0.0, NAN, -NAN, INF, -INF, 0.1], pa.float32(), [0, 0, 2, 2, 4, 5, 6]),
        ([Decimal("1.50"), Decimal("-1.50"), Decimal("1.5")], pa.decimal128(9, 2), [0, 1, 0]),
        ([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1, 1, 1)], pa.date32(), [0, 1, 0]),
        ([-5000, 5000, 2**62, -5000], pa.timestamp("ns"), [0, 1, 2, 0]),
        ([True, False, True], pa.bool_(), [0, 1, 0]),
    ],
)
def test_keys_and_hashes_are_equal_for_equal_values(
    values: list[Any], type_: pa.DataType, groups: list[int]
) -> None:
    for columns in ([array(values, type_)], [array(values, type_).dictionary_encode()]):
        if pa.types.is_dictionary(columns[0].type) and not pa.types.is_string(type_):
            continue
        keys, hashes = keyed.keys(columns), keyed.hashes(columns).to_pylist()
        assert [keys.index(key) for key in keys] == groups
        assert [hashes.index(each) for each in hashes] == groups


def test_nanoseconds_that_hash_alike_are_other_keys() -> None:
    column = array([1, 2], pa.timestamp("ns"))
    assert keyed.keys([column]) == [1, 2]


def test_a_key_of_several_columns_is_all_of_them() -> None:
    columns = [array([1, 1, 2]), array(["a", "b", "a"])]
    assert keyed.keys(columns) == [(1, "a"), (1, "b"), (2, "a")]
    assert len(set(keyed.hashes(columns).to_pylist())) == 3
    # The order of the values must count.
    swapped = keyed.hashes([array(["a"]), array(["b"])]), keyed.hashes([array(["b"]), array(["a"])])
    assert swapped[0] != swapped[1]


@pytest.mark.parametrize("type_", [pa.list_(pa.int64()), pa.struct([("x", pa.int8())])])
def test_nested_values_are_no_keys(type_: pa.DataType) -> None:
    with pytest.raises(ValueError, match="cannot be put in buckets"):
        keyed.hashes([pa.nulls(1, type_)])


@pytest.mark.parametrize(
    ("value", "type_"),
    [(7, pa.int64()), (-(2**63), pa.int64()), (7, pa.int8()), (2**64 - 1, pa.uint64()),
     ("ä", pa.string()), ("", pa.string()), (-0.0, pa.float64()), (NAN, pa.float32()),
     (dt.date(2024, 2, 29), pa.date32()), (Decimal("1.50"), pa.decimal128(9, 2)),
     (True, pa.bool_()),
     ("a", pa.string_view()), (b"a", pa.binary())],
)  # fmt: skip
def test_what_is_sought_has_the_key_and_hash_of_the_row(value: Any, type_: pa.DataType) -> None:
    held = [array([value], type_)]
    found = keyed.sought(held)
    assert (found.key, found.hash) == (keyed.keys(held)[0], keyed.hashes(held)[0].as_py())
    both = [*held, array(["x"])]
    found = keyed.sought(both)
    assert (found.key, found.hash) == (keyed.keys(both)[0], keyed.hashes(both)[0].as_py())


def test_a_key_is_worded_as_a_user_would() -> None:
    values = [pa.scalar(1), pa.scalar("it's"), pa.scalar(None, pa.string()), pa.scalar(1.5)]
    assert keyed.text(["a", "b", "c", "d"], values) == "(a, b, c, d) = 1, 'it's', 'None', 1.5"


CHUNKS = st.lists(
    st.lists(st.tuples(st.none() | st.integers(0, 4), st.none() | st.sampled_from(["a", "b", ""])),
             max_size=6),
    max_size=4,
)  # fmt: skip


def indexed(chunks: list[list[tuple[Any, Any]]]) -> tuple[KeyIndex, dict[Any, list[int]]]:
    """Index chunks of rows, and say where each key is."""
    pieces = [
        [array([row[0] for row in rows], pa.int64()), array([row[1] for row in rows], pa.string())]
        for rows in chunks
    ]
    places: dict[Any, list[int]] = {}
    for place, row in enumerate(row for rows in chunks for row in rows):
        if None not in row:
            places.setdefault(row, []).append(place)
    return KeyIndex.over(pieces), places


def hash_of(key: tuple[int, str]) -> int:
    return keyed.sought([array([key[0]], pa.int64()), array([key[1]], pa.string())]).hash


HASHES = {
    (number, text): hash_of((number, text)) for number in range(6) for text in ("a", "b", "", "c")
}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(CHUNKS, st.sets(st.integers(0, 23)))
def test_an_index_is_a_dictionary_of_lists(
    chunks: list[list[tuple[Any, Any]]], gone: set[int]
) -> None:
    index, places = indexed(chunks)
    asked, hashes = list(HASHES), list(HASHES.values())
    for _ in range(2):
        assert len(index) == sum(map(len, places.values()))
        assert [index.at(each) for each in hashes] == [places.get(key, []) for key in asked]
        assert index.first(array([*hashes, None], pa.uint64())) == [
            *(places.get(key, [-1])[0] for key in asked), -1
        ]  # fmt: skip
        assert sorted(index.repeated()) == sorted(each for each in places.values() if len(each) > 1)
        index = index.without(sorted(gone))
        places = {key: [n for n in held if n not in gone] for key, held in places.items()}
        places = {key: held for key, held in places.items() if held}


def test_an_index_of_nothing_finds_nothing() -> None:
    for index in (KeyIndex.over([]), KeyIndex.over([[array([], pa.int64())]]),
                  KeyIndex.over([[array([None, None], pa.int64())]])):  # fmt: skip
        assert len(index) == 0 and index.repeated() == [] and index.at(0) == []
        assert index.first(array([1, None], pa.uint64())) == [-1, -1]


def test_hashes_that_meet_by_chance_are_all_hits() -> None:
    top = 2**64 - 1
    index = KeyIndex._sorted(array([top, 0, top, 5], pa.uint64()), array([3, 1, 0, 2], pa.uint32()))
    assert index.at(top) == [3, 0], "in the order in which they came"
    assert index.at(0) == [1] and index.at(6) == []
    assert index.first(array([top, 0, 6], pa.uint64())) == [3, 1, -1]
    assert index.repeated() == [[3, 0]]
    assert index.nbytes == 4 * 12
