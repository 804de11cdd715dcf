import asyncio
import datetime
import subprocess
import sys
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.protocols.fleet import Split
from caraway_engine.rows import splitting

KEYS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "float": (pa.float64(), st.floats(allow_nan=False)),
    "text": (pa.string(), st.text(max_size=20)),
    "bytes": (pa.binary(), st.binary(max_size=20)),
    "decimal": (pa.decimal128(20, 3), st.decimals(-1000, 1000, places=3)),
    "bool": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))),
    "list": (pa.list_(pa.string()), st.lists(st.text(max_size=3), max_size=3)),
    "struct": (
        pa.struct([("x", pa.int64()), ("y", pa.string())]),
        st.fixed_dictionaries({"x": st.none() | st.integers(0, 9), "y": st.text(max_size=2)}),
    ),
}


def parted(table: pa.Table, by: Split) -> list[list[Any]]:
    """Split, and return the values of each partition's first column."""
    parts = asyncio.run(splitting.split(table, by))
    return [part.column(0).to_pylist() for part in parts]


def places(keys: list[Any], type_: pa.DataType, count: int) -> dict[str, int]:
    """Return for each key the partition where it is; each must be in one."""
    table = pa.table([pa.array(keys, type_)], ["k"])
    found: dict[str, int] = {}
    for number, values in enumerate(parted(table, Split((0,), count))):
        for value in values:
            assert found.setdefault(repr(value), number) == number
    return found


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[Any]]:
    type_, values = KEYS[draw(st.sampled_from(sorted(KEYS)))]
    few = draw(st.lists(st.none() | values, min_size=1, max_size=6))
    return type_, draw(st.lists(st.sampled_from(few), min_size=1, max_size=40))


@settings(max_examples=60, deadline=None)
@given(drawn=columns(), count=st.integers(1, 9), seed=st.randoms(use_true_random=False))
def test_partition_of_a_key_depends_on_nothing_but_the_key(
    drawn: tuple[pa.DataType, list[Any]], count: int, seed: Any
) -> None:
    type_, keys = drawn
    expected = places(keys, type_, count)
    shuffled = seed.sample(keys, len(keys))
    cut = seed.randrange(len(keys) + 1)
    chunks = pa.chunked_array([pa.array(shuffled[:cut], type_), pa.array(shuffled[cut:], type_)])
    table = pa.table([range(len(keys)), chunks, ["x"] * len(keys)], ["v", "k", "w"])
    parts = asyncio.run(splitting.split(table, Split((1,), count)))
    for number, part in enumerate(parts):
        assert {expected[repr(key)] for key in part.column(1).to_pylist()} <= {number}
        assert part.schema == table.schema
    rows = Counter(v for part in parts for v in part.column(0).to_pylist())
    assert rows == Counter(range(len(keys)))


@pytest.mark.parametrize("count", [1, 2, 5, 33])
def test_rows_are_kept_and_spread(count: int) -> None:
    table = pa.table({"k": [f"key {n}" for n in range(20_000)], "v": range(20_000)})
    parts = asyncio.run(splitting.split(table, Split((0,), count)))
    assert len(parts) == count
    assert sorted(v for part in parts for v in part["v"].to_pylist()) == list(range(20_000))
    assert min(part.num_rows for part in parts) > 20_000 / count / 2


def test_several_keys_are_hashed_together_in_their_order() -> None:
    left = pa.table({"a": [1, 1, 2, None, 1], "b": ["x", "y", "x", "x", None], "v": range(5)})
    right = pa.table({"v": range(5), "b": left["b"], "a": left["a"]})
    for count in (2, 4, 7):
        one = asyncio.run(splitting.split(left, Split((0, 1), count)))
        other = asyncio.run(splitting.split(right, Split((2, 1), count)))
        assert [part["v"].to_pylist() for part in one] == [p["v"].to_pylist() for p in other]


def test_every_key_is_hashed() -> None:
    table = pa.table({"a": [1] * 100, "b": range(100), "c": [1] * 100})
    for keys in ((0, 1), (1, 0), (0, 1, 2)):
        parts = asyncio.run(splitting.split(table, Split(keys, 4)))
        assert all(part.num_rows for part in parts)


@pytest.mark.parametrize("count", [1, 3])
def test_columns_that_were_only_there_to_be_hashed_are_dropped(count: int) -> None:
    table = pa.table({"v": [1, 2, 3], "k": [7, 8, 7]})
    parts = asyncio.run(splitting.split(table, Split((1,), count, extra=1)))
    assert {tuple(part.column_names) for part in parts} == {("v",)}
    assert sorted(v for part in parts for v in part["v"].to_pylist()) == [1, 2, 3]


def test_table_without_rows_gives_as_many_without() -> None:
    table = pa.schema([("k", pa.string()), ("v", pa.int64())]).empty_table()
    parts = asyncio.run(splitting.split(table, Split((0,), 3)))
    assert [part.num_rows for part in parts] == [0, 0, 0]
    assert all(part.schema == table.schema for part in parts)


ELSEWHERE = f"""
import os
import pyarrow as pa
from {__name__} import WORDS, places
print(sorted(places(WORDS, pa.string(), 7).items()), flush=True)
os._exit(0)  # Threads of the engine may outlive the interpreter, which then aborts.
"""
WORDS = [None, "", "a", "ä", "longer than twelve bytes", *map(str, range(50))]


def test_another_process_parts_alike() -> None:
    other = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, timeout=60, check=True
    )
    assert other.stdout.strip() == repr(sorted(places(WORDS, pa.string(), 7).items()))


@pytest.mark.parametrize(
    ("partitions", "columns", "rows"),
    [(2, 12, 65_536), (8, 12, 32_768), (16, 200, 8_192), (64, 2_000, 8_192), (2, 0, 65_536)],
)
def test_batches_of_wide_rows_are_short(partitions: int, columns: int, rows: int) -> None:
    assert splitting._batch_rows(partitions, columns) == rows


def test_splits_at_once_do_not_meet() -> None:
    async def all_of_them() -> None:
        tables = [pa.table({"k": [n] * 100, "v": range(100)}) for n in range(24)]
        found = await asyncio.gather(
            *(splitting.split(table, Split((0,), 2 + n % 3)) for n, table in enumerate(tables))
        )
        for number, parts in enumerate(found):
            assert {k for part in parts for k in part["k"].to_pylist()} == {number}
            assert sum(part.num_rows for part in parts) == 100

    asyncio.run(all_of_them())
