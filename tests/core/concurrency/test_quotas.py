"""Quotas of shared tables, also against a plain model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.concurrency.quotas import Quota, QuotaLimits
from caraway_core.errors import OverloadedError


def test_a_holder_above_its_limit_gives_up_its_own_oldest() -> None:
    quota: Quota[int] = Quota("entries", QuotaLimits(most=10, most_each=2))
    assert [quota.add("a", 1), quota.add("b", 2), quota.add("a", 3)] == [[], [], []]
    quota.use(1)
    assert quota.add("a", 4) == [3]
    assert [key in quota for key in (1, 2, 3, 4)] == [True, True, False, True]
    assert (quota.holders, quota.most_held, quota.evictions) == (2, 2, 1)


def test_a_full_table_is_freed_by_the_holder_that_has_most() -> None:
    quota: Quota[int] = Quota("entries", QuotaLimits(most=3))
    for key in range(3):
        quota.add("greedy", key)
    assert quota.add("other", 10) == [0]
    assert quota.add("third", 11) == [1]
    assert quota.add("greedy", 3) == [2], "one of its own, as it has no fewer than the others"
    assert [10 in quota, 11 in quota] == [True, True]


def test_bytes_are_limited_too() -> None:
    quota: Quota[str] = Quota("entries", QuotaLimits(most_bytes=100, most_bytes_each=60))
    quota.add("a", "a1", 30)
    quota.add("a", "a2", 30)
    assert quota.add("a", "a3", 10) == ["a1"]
    quota.add("b", "b1", 55)
    assert quota.add("c", "c1", 20) == ["b1"]
    assert quota.size_bytes == 60
    quota.add("c", "c1", 5)
    assert (quota.size_bytes, len(quota)) == (45, 3)


def test_everybody_may_fill_the_table() -> None:
    quota: Quota[int] = Quota("entries", QuotaLimits(most=3, most_each=1, everybody="public"))
    assert [quota.add("public", key) for key in range(4)] == [[], [], [], [0]]


def test_where_nothing_may_go_the_new_entry_is_refused() -> None:
    quota: Quota[int] = Quota(
        "answers", QuotaLimits(most=2, most_each=1), may_go=lambda key: key == 7
    )
    quota.add("a", 1)
    with pytest.raises(OverloadedError, match="this caller has too many answers"):
        quota.add("a", 2)
    quota.add("b", 7)
    with pytest.raises(OverloadedError, match="of all callers"):
        quota.add("c", 3)
    quota.drop(1)
    quota.add("c", 3)
    assert quota.add("b", 4) == [7]
    assert (quota.refusals, quota.evictions) == (2, 1)


def test_an_entry_larger_than_its_limit_is_refused() -> None:
    quota: Quota[int] = Quota("entries", QuotaLimits(most_bytes_each=10))
    quota.add("a", 1, 5)
    with pytest.raises(OverloadedError):
        quota.add("a", 2, 11)


def test_a_refused_entry_costs_no_other() -> None:
    quota: Quota[int] = Quota(
        "entries", QuotaLimits(most_bytes_each=10), may_go=lambda key: key < 3
    )
    for key in (1, 2, 3):
        quota.add("a", key, 3)
    with pytest.raises(OverloadedError):
        quota.add("a", 4, 8)
    assert (len(quota), quota.size_bytes, quota.evictions) == (3, 9, 0)
    assert quota.add("a", 5, 3) == [1], "the order is as before"


def test_entries_that_are_there_already_are_counted_and_told_as_surplus() -> None:
    quota: Quota[int] = Quota("entries", QuotaLimits(most_each=3, most_bytes_each=10))
    for key in range(5):
        quota.count("a", key, 1)
    quota.count("b", 10, 4)
    quota.count("b", 11, 8)
    assert (quota.surplus(), len(quota)) == ([0, 1, 10], 7)
    for key in quota.surplus():
        quota.drop(key)
    assert (quota.surplus(), quota.evictions) == ([], 0)


def test_idle_entries_are_forgotten() -> None:
    now = 0.0
    quota: Quota[int] = Quota("entries", QuotaLimits(), kept_s=10, clock=lambda: now)
    for key in range(3):
        quota.add("a", key)
    now = 9.0
    quota.use(0)
    now = 11.0
    assert quota.drop_idle() == [1, 2]
    assert len(quota) == 1
    quota.clear()
    assert (len(quota), quota.holders, quota.most_held) == (0, 0, 0)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 40), st.booleans()),
        max_size=60,
    )
)
def test_limits_hold_and_sums_agree(steps: list[tuple[str, int, int, bool]]) -> None:
    limits = QuotaLimits(most=6, most_each=4, most_bytes=100, most_bytes_each=60)
    quota: Quota[int] = Quota("entries", limits)
    kept: dict[int, tuple[str, int]] = {}
    for holder, key, size, is_dropped in steps:
        if is_dropped:
            quota.drop(key)
            kept.pop(key, None)
            continue
        kept.pop(key, None)
        for gone in quota.add(holder, key, size):
            del kept[gone]
        kept[key] = holder, size
        assert len(kept) == len(quota) <= 6
        assert sum(each for _, each in kept.values()) == quota.size_bytes <= 100
        for each in "abc":
            own = [size for owner, size in kept.values() if owner == each]
            assert len(own) <= 4 and sum(own) <= 60
