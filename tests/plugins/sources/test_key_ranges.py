"""Parts of large tables: together they have each row once."""

from hypothesis import given
from hypothesis import strategies as st

from caraway_core.tables import RemoteSplit
from caraway_plugins.sources import key_ranges

MIB = 1024 * 1024
KEYS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=200)


def parts_of(splits: tuple[RemoteSplit, ...], key: int) -> int:
    """Return how many parts have a key. A part ends before its last value."""
    return sum(
        (each.low is None or key >= each.low) and (each.high is None or key < each.high)
        for each in splits
    )


@given(KEYS, st.integers(0, 2**50), st.integers(-(2**63), 2**63 - 1))
def test_each_key_is_in_one_part(values: list[int], size_bytes: int, other: int) -> None:
    splits = key_ranges.cut("id", values, size_bytes)
    assert len(splits) != 1 and len(splits) <= key_ranges.MOST_SPLITS
    if splits:
        assert (splits[0].low, splits[-1].high) == (None, None)
        assert all(parts_of(splits, key) == 1 for key in [*values, other])
        assert {each.column for each in splits} == {"id"}


def test_table_of_few_bytes_or_few_keys_is_not_cut() -> None:
    many = range(1_000)
    assert key_ranges.cut("id", many, 2 * key_ranges.SPLIT_BYTES - 1) == ()
    assert len(key_ranges.cut("id", many, 2 * key_ranges.SPLIT_BYTES)) == 2
    for few in ([], [1], [1, 1, 1], [1, 2]):
        assert key_ranges.cut("id", few, 2**50) == ()
    assert len(key_ranges.cut("id", [1, 2, 3], 2**50)) == 2


def test_parts_have_about_as_many_rows_each() -> None:
    splits = key_ranges.cut("id", range(0, 8_000, 2), 8 * 16 * MIB)
    assert len(splits) == 8
    counts = [sum(parts_of((each,), key) for key in range(0, 8_000, 2)) for each in splits]
    assert max(counts) - min(counts) <= 2 and sum(counts) == 4_000
    assert all(each.size_bytes == 16 * MIB for each in splits)
