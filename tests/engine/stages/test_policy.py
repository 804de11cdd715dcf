"""The thresholds by which exchanges are chosen: what holds for sizes of any kind."""

from hypothesis import given
from hypothesis import strategies as st

from caraway_engine.stages.policy import MIB, Policy, decoded, filtered

SIZES = st.floats(0, 1e13)
SLOTS = st.integers(1, 200)
MEMORIES = st.integers(64 * MIB, 2**40)
POLICY = Policy()


@given(SIZES, SLOTS, MEMORIES)
def test_each_partition_fits_and_each_slot_has_as_many(
    size: float, slots: int, memory: int
) -> None:
    count = POLICY.partitions(size, slots, memory)
    assert count >= slots and count % slots == 0
    limit = min(POLICY.partition_bytes, memory / 8)
    assert size / count <= limit * (1 + 1e-9)
    # One partition less for each slot would not fit.
    fewer = count - slots
    assert not fewer or size / fewer > limit * (1 - 1e-9)


@given(SIZES, SIZES, SLOTS, MEMORIES)
def test_broadcasts_fit_in_memory_and_move_no_more_than_an_exchange(
    size: float, other: float, slots: int, memory: int
) -> None:
    if POLICY.may_broadcast(size, other, slots, memory):
        assert size <= memory / 8
        assert size <= POLICY.broadcast_bytes or size * slots <= size + other


@given(SIZES, SIZES, SIZES, SLOTS, MEMORIES)
def test_what_is_smaller_may_be_broadcast_as_well(
    size: float, share: float, other: float, slots: int, memory: int
) -> None:
    smaller = min(size, share)
    if POLICY.may_broadcast(size, other, slots, memory):
        assert POLICY.may_broadcast(smaller, other, slots, memory)


@given(SIZES, SIZES, SLOTS, MEMORIES)
def test_a_policy_without_broadcasts_has_none(
    size: float, other: float, slots: int, memory: int
) -> None:
    policy = Policy(broadcast_bytes=0)
    assert policy.may_broadcast(size, other, slots, memory) == (size == 0)


def test_a_join_in_place_needs_less_with_more_slots() -> None:
    size, memory = 4 * 2**30, 8 * 2**30
    assert not POLICY.may_join_in_place(size, 3, memory)
    assert POLICY.may_join_in_place(size, 4, memory)


def test_estimates_go_the_right_way() -> None:
    assert decoded(10) > 10 > filtered(10) > 0
    assert POLICY.is_small_table(16 * MIB) and not POLICY.is_small_table(16 * MIB + 1)
    assert POLICY.may_gather(0) and not POLICY.may_gather(17 * MIB)
