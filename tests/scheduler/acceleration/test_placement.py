import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.ids import ExecutorId
from caraway_core.partitions.keys import PartitionId
from caraway_scheduler.acceleration import balancing, placement
from caraway_scheduler.acceleration.placement import Placement, place

BOUND = 1.25


def tables(datasets: int, buckets: int) -> list[PartitionId]:
    return [PartitionId(f"d{d}", str(b)) for d in range(datasets) for b in range(buckets)]


def machines(*numbers: int, weight: float = 1.0) -> dict[ExecutorId, float]:
    return {ExecutorId(f"executor-{number}"): weight for number in numbers}


def loads(placed: Placement) -> Counter[ExecutorId]:
    return Counter(owner for owners in placed.owners.values() for owner in owners)


def moved(old: Placement, new: Placement) -> int:
    """Count the copies that somebody has to load."""
    return sum(len(move.gained) for move in placement.moves(old, new))


def check(
    placed: Placement, partitions: list[PartitionId], executors: Mapping[ExecutorId, float], n: int
) -> None:
    assert set(placed.owners) == set(partitions)
    for owners in placed.owners.values():
        assert len(owners) == len(set(owners)) == min(n, len(executors))
        assert set(owners) <= set(executors)
    if len(set(executors.values())) == 1:
        average = len(partitions) * min(n, len(executors)) / len(executors)
        assert max(loads(placed).values(), default=0) <= math.ceil(BOUND * average)


SOME_TABLES = st.lists(
    st.builds(PartitionId, st.sampled_from("abc"), st.integers(0, 30).map(str)), unique=True
)
EVENTS = st.lists(
    st.tuples(st.sets(st.integers(0, 8)), SOME_TABLES, st.integers(1, 4)), min_size=1, max_size=6
)


@given(EVENTS, st.randoms(use_true_random=False))
def test_whatever_comes_and_goes_every_partition_has_its_owners_within_the_bound(
    events: list[tuple[set[int], list[PartitionId], int]], chance: random.Random
) -> None:
    placed: Placement | None = None
    for numbers, partitions, replicas in events:
        executors = machines(*numbers)
        before, placed = placed, place(partitions, executors, placed, replicas)
        check(placed, partitions, executors, replicas)
        assert placed.epoch == (before.epoch if before else 0) + (
            before is None or before.owners != placed.owners
        )
        chance.shuffle(partitions)
        again = dict(chance.sample(sorted(executors.items()), len(executors)))
        assert place(partitions, again, before, replicas) == placed
        assert place(partitions, again, placed, replicas) is placed


@given(
    st.lists(st.dictionaries(st.integers(0, 6), st.floats(0.1, 20)), min_size=1, max_size=4),
    SOME_TABLES,
    st.integers(1, 4),
)
def test_weights_share_out_the_load_and_nothing_moves_without_a_cause(
    changes: list[dict[int, float]], partitions: list[PartitionId], replicas: int
) -> None:
    placed: Placement | None = None
    for weights in changes:
        executors = {ExecutorId(f"executor-{n}"): weight for n, weight in weights.items()}
        placed = place(partitions, executors, placed, replicas)
        check(placed, partitions, executors, replicas)
        count = min(replicas, len(executors))
        shares = balancing.fair_shares(executors, len(partitions), count)
        held = loads(placed)
        assert all(held[each] <= math.ceil(BOUND * share) for each, share in shares.items())
        assert place(partitions, executors, placed, replicas) is placed


@given(st.integers(0, 1000), st.integers(2, 8), st.sampled_from([1, 2]))
def test_joining_executor_takes_its_share_and_nothing_else_moves(
    salt: int, count: int, replicas: int
) -> None:
    partitions = tables(10, 8)
    some = [*range(salt, salt + count)]
    before = place(partitions, machines(*some), None, replicas)
    after = place(partitions, machines(*some, salt + count), before, replicas)
    share = 80 * replicas / (count + 1)
    assert math.floor(share) <= moved(before, after) <= 1.1 * share
    newcomer = ExecutorId(f"executor-{salt + count}")
    assert all(move.gained == (newcomer,) for move in placement.moves(before, after))


@given(st.integers(0, 1000), st.integers(2, 8), st.sampled_from([1, 2]))
def test_lost_executor_moves_only_what_it_held(salt: int, count: int, replicas: int) -> None:
    partitions = tables(10, 8)
    some = [*range(salt, salt + count)]
    before = place(partitions, machines(*some), None, replicas)
    after = place(partitions, machines(*some[1:]), before, replicas)
    held = len(before.of(ExecutorId(f"executor-{salt}")))
    missing = held if count > replicas else 0
    # More than that would be the excess of the bound: it never costs a move.
    assert moved(before, after) == missing


def test_third_executor_moves_the_share_and_every_dataset_stays_spread() -> None:
    before = place(tables(10, 8), machines(1, 2), None, 1)
    after = place(tables(10, 8), machines(1, 2, 3), before, 1)
    assert moved(before, after) == 26
    for dataset in {each.dataset for each in after.owners}:
        spread = Counter(after.owners[each][0] for each in after.owners if each.dataset == dataset)
        assert sorted(spread.values()) in ([2, 3, 3], [2, 2, 4])


def test_executor_that_returns_gets_most_of_what_it_held() -> None:
    before = place(tables(10, 8), machines(1, 2, 3), None, 1)
    without = place(tables(10, 8), machines(1, 2), before, 1)
    back = place(tables(10, 8), machines(1, 2, 3), without, 1)
    lost = ExecutorId("executor-3")
    same = set(before.of(lost)) & set(back.of(lost))
    # By chance it would be 9 of 27.
    assert len(same) >= 15


def test_executor_above_the_bound_gives_away_only_the_excess() -> None:
    here, there = ExecutorId("a"), ExecutorId("b")
    partitions = tables(1, 10)
    crowded = Placement(3, dict.fromkeys(partitions, (here,)))
    spread = place(partitions, {here: 1.0, there: 1.0}, crowded, 1)
    assert (spread.epoch, moved(crowded, spread)) == (4, 5 if loads(spread)[here] == 5 else 3)
    check(spread, partitions, {here: 1.0, there: 1.0}, 1)


def test_weights_are_followed() -> None:
    heavy, light = ExecutorId("heavy"), ExecutorId("light")
    placed = place(tables(4, 25), {heavy: 3.0, light: 1.0}, None, 1)
    assert 65 <= loads(placed)[heavy] <= 85
    assert loads(place(tables(4, 25), {heavy: 9.0, light: 1.0}, None, 2)) == {
        heavy: 100,
        light: 100,
    }


def test_more_replicas_add_and_fewer_drop() -> None:
    one = place(tables(2, 8), machines(1, 2, 3), None, 1)
    two = place(tables(2, 8), machines(1, 2, 3), one, 2)
    assert all(not move.lost and len(move.gained) == 1 for move in placement.moves(one, two))
    fewer = place(tables(2, 8), machines(1, 2, 3), two, 1)
    assert [owners[:1] for owners in two.owners.values()] == [*fewer.owners.values()]


def test_no_executors_means_no_owners() -> None:
    before = place(tables(1, 2), machines(1), None, 1)
    after = place(tables(1, 2), {}, before, 1)
    assert (after.epoch, {*after.owners.values()}) == (2, {()})
    assert moved(before, after) == 0
    assert [move.lost for move in placement.moves(before, after)] == [("executor-1",)] * 2


def test_placement_is_json_and_back() -> None:
    placed = place(
        [PartitionId('a "b"/c', "0"), PartitionId("ü", "(1, 'x')")], machines(1), None, 1
    )
    assert Placement.from_json(json.loads(json.dumps(placed.to_json()))) == placed
    assert Placement.from_json(Placement().to_json()) == Placement()


def test_placement_is_the_same_in_every_process() -> None:
    program = (
        "from tests.scheduler.acceleration.test_placement import *\n"
        "import json; print(json.dumps(place(tables(3, 8), machines(1, 2, 3), None, 2).to_json()))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    expected = place(tables(3, 8), machines(1, 2, 3), None, 2).to_json()
    assert [json.loads(answer) for answer in answers] == [expected]


@pytest.mark.parametrize(
    ("weight", "replicas", "bound", "message"),
    [
        (0.0, 1, 1.25, "executor 'executor-1' has weight 0.0"),
        (math.nan, 1, 1.25, "has weight nan"),
        (1.0, 0, 1.25, "0 replicas are wanted"),
        (1.0, 1, 0.9, "the load bound is 0.9"),
    ],
)
def test_what_cannot_be_placed(weight: float, replicas: int, bound: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        place([], machines(1, weight=weight), None, replicas, bound)


def test_long_life_of_joins_and_losses_moves_hardly_more_than_it_must() -> None:
    chance = random.Random(5)
    numbers = [1, 2, 3]
    placed = place(tables(10, 8), machines(*numbers), None, 1)
    must = done = 0
    for newcomer in range(4, 204):
        before = placed
        if len(numbers) < 2 or (len(numbers) < 9 and chance.random() < 0.5):
            numbers.append(newcomer)
            must += 80 // len(numbers)
        else:
            lost = numbers.pop(chance.randrange(len(numbers)))
            must += len(before.of(ExecutorId(f"executor-{lost}")))
        placed = place(tables(10, 8), machines(*numbers), before, 1)
        done += moved(before, placed)
    assert must <= done <= 1.01 * must
