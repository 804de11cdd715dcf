"""Values of the stage graph that decide something: which tables are divided, and what tasks do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.ids import TableName
from caraway_core.work import SubstraitFragment
from caraway_engine.stages.graph import Cluster, Stage, TableFacts
from caraway_engine.stages.policy import Policy
from tests.engine.stages.planning import LARGE, MB, SCHEMAS

T, U = TableName("t"), TableName("u")


def columns(count: int) -> frozenset[str]:
    return frozenset(map(str, range(count)))


@pytest.mark.parametrize(
    ("facts", "width", "is_divided"),
    [
        (TableFacts(LARGE, 10, is_divisible=True), 10, True),
        (TableFacts(LARGE, 10, is_divisible=False), 10, False),
        (TableFacts(MB, 10, is_divisible=True), 10, False),
        (TableFacts(0, 10, is_divisible=True), 10, False),
        # Few columns of many are little to read, except of a table that is kept whole.
        (TableFacts(LARGE, 1000, is_divisible=True), 1, False),
        (TableFacts(LARGE, 1000, is_divisible=True, is_kept=True), 1, True),
        (TableFacts(LARGE, 0, is_divisible=True), 0, False),
        # The sizes of columns decide where they are known.
        (TableFacts(LARGE, 2, is_divisible=True, column_bytes={"0": MB, "1": LARGE}), 1, False),
        (TableFacts(LARGE, 2, is_divisible=True, column_bytes={"0": LARGE, "1": MB}), 1, True),
        (TableFacts(LARGE, 2, is_divisible=True, column_bytes={"0": MB, "1": LARGE}), 2, True),
        (TableFacts(LARGE, 2, True, is_kept=True, column_bytes={"0": MB, "1": LARGE}), 1, True),
    ],
)
def test_large_reads_of_divisible_tables_are_divided(
    facts: TableFacts, width: int, is_divided: bool
) -> None:
    cluster = Cluster(4, tables={T: facts})
    reads = {T: [columns(0), columns(width)], U: [columns(5)]}
    assert cluster.divided(reads) == ({T} if is_divided else set())
    assert cluster.divided({}) == set()


@given(st.integers(0, 10**12), st.integers(0, 50), st.integers(0, 50), st.booleans())
def test_no_read_is_larger_than_its_table(size: int, count: int, width: int, is_kept: bool) -> None:
    facts = TableFacts(size, count, is_divisible=True, is_kept=is_kept)
    if width <= count:
        assert 0 <= facts.read_bytes(columns(width)) <= size
    assert facts.read_bytes(columns(count)) == size or count == 0


@given(st.integers(0, 10**13), st.integers(0, 10**13), st.integers(1, 64), st.integers(1, 2**40))
def test_a_cluster_decides_as_its_policy(size: int, other: int, slots: int, memory: int) -> None:
    policy = Policy()
    cluster = Cluster(slots, memory, {}, policy)
    assert cluster.may_broadcast(size, other) == policy.may_broadcast(size, other, slots, memory)
    assert cluster.may_join_in_place(size) == policy.may_join_in_place(size, slots, memory)
    assert cluster.partitions(size) == policy.partitions(size, slots, memory)


@pytest.mark.parametrize("works", [0, 1, 3])
def test_each_task_has_its_work_or_the_fragment(works: int) -> None:
    made = tuple(SubstraitFragment(bytes([number])) for number in range(works))
    stage = Stage("s", b"plan", SCHEMAS["dims"], "slots", 3, works=made)
    found = [stage.work(number) for number in range(3)]
    if not works:
        assert found == [SubstraitFragment(b"plan")] * 3
    elif works == 1:
        assert found == [made[0]] * 3
    else:
        assert found == list(made)
