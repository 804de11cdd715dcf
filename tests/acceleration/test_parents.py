"""Which datasets copy others, and when their rows are those of these."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from caraway_acceleration.parents import Parents
from caraway_core.ids import TableName
from caraway_core.statements import ViewFacts

ORDERS, COPY, TIMED, PLAIN = map(TableName, ("orders", "eu.copy", "timed", "plain"))


class KeptCopy:
    """An accelerated dataset that counts how often its parents moved."""

    def __init__(self, *, is_following: bool) -> None:
        self.plan = SimpleNamespace(is_following=is_following)
        self.refresher = self
        self.current = SimpleNamespace(shown=None)
        self.moves = 0
        self.reached: list[int] = []

    def parents_moved(self) -> None:
        self.moves += 1

    async def reach(self, revision: int) -> None:
        self.reached.append(revision)

    def show(self, key: str, *logged: str) -> None:
        log = tuple(SimpleNamespace(chunk=SimpleNamespace(checksum=each)) for each in logged)
        self.current.shown = SimpleNamespace(parts=(SimpleNamespace(key=key),), read_log=log)


class Runtime:
    """Two copies of one dataset; one of them has a schedule."""

    def __init__(self) -> None:
        self.kept: dict[TableName, Any] = {
            ORDERS: KeptCopy(is_following=False),
            COPY: KeptCopy(is_following=True),
            TIMED: KeptCopy(is_following=False),
        }
        self.planned = {
            TableName("caraway_source.eu__copy"): ViewFacts(frozenset({ORDERS, PLAIN})),
            TableName("caraway_source.timed"): ViewFacts(frozenset({ORDERS})),
        }
        self.parents = Parents(self.kept, lambda: self.planned, self.revisions)

    async def revisions(self, names: Sequence[TableName]) -> Sequence[int]:
        return [5 for _ in names]


def test_only_those_without_a_schedule_follow() -> None:
    runtime = Runtime()
    runtime.parents.moved(ORDERS)
    runtime.parents.moved(COPY)
    assert [each.moves for each in runtime.kept.values()] == [0, 1, 0]


async def test_position_is_that_of_the_state_store_and_tells_apart_all_states() -> None:
    runtime = Runtime()
    orders = runtime.kept[ORDERS]
    assert await runtime.parents.position(COPY) is None
    assert await runtime.parents.position(ORDERS) is None
    found = []
    for shown in (("a",), ("b",), ("b", "x"), ("b", "x", "y"), ("b", "y")):
        orders.show(*shown)
        found.append(await runtime.parents.position(COPY))
        assert await runtime.parents.position(COPY) == found[-1]
    assert len(set(found)) == 5 and None not in found
    assert set(orders.reached) == {5}


async def test_a_dataset_that_is_gone_is_no_parent() -> None:
    runtime = Runtime()
    runtime.kept[ORDERS].show("a")
    runtime.kept.pop(ORDERS)
    assert await runtime.parents.position(COPY) is None
