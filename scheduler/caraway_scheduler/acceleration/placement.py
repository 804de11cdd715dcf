"""Which executors own a partition, and what moves when executors come and go.

Rendezvous hashing ranks the executors for each partition; it decides where nothing stands yet and
what comes back to an executor that returns. What stands stays, as every move costs a load:

1. Owners that are gone are dropped, and each gap is filled by the best ranked executor of those
   that are below their fair share.
2. An executor that is left behind (fewer than its fair share divided by the bound, as a new one
   is) takes from those above theirs until it has its fair share.
3. An executor above its bound (`load_bound` times its fair share, rounded up) gives away.

So nothing moves without a cause. Beside the bound over all partitions, each dataset is spread
evenly where that is possible, because one query waits for the fullest executor of one dataset.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_core.ids import ExecutorId
from caraway_core.partitions.keys import PartitionId
from caraway_scheduler.acceleration import balancing

Owners = tuple[ExecutorId, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Who owns what. The epoch grows exactly when the owners change.

    The first owner of a partition is the one that writes; a partition without owners is one that
    no executor was there for.
    """

    epoch: int = 0
    owners: Mapping[PartitionId, Owners] = field(default_factory=dict)

    def of(self, executor_id: ExecutorId) -> tuple[PartitionId, ...]:
        """Return what an executor owns."""
        return tuple(each for each, owners in self.owners.items() if executor_id in owners)

    def to_json(self) -> dict[str, Any]:
        """Return the placement as values of JSON."""
        return {
            "epoch": self.epoch,
            "partitions": [
                {"dataset": each.dataset, "key": each.key, "owners": list(owners)}
                for each, owners in self.owners.items()
            ],
        }

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Placement":
        """Read what `to_json` returned."""
        owners = {
            PartitionId(each["dataset"], each["key"]): tuple(map(ExecutorId, each["owners"]))
            for each in content["partitions"]
        }
        return Placement(content["epoch"], owners)


@dataclass(frozen=True, slots=True)
class Move:
    """How the owners of one partition change: who has to load it, and who may drop it."""

    partition: PartitionId
    gained: Owners
    lost: Owners


def place(
    partitions: Sequence[PartitionId],
    executors: Mapping[ExecutorId, float],
    previous: Placement | None,
    replicas: int,
    load_bound: float = 1.25,
) -> Placement:
    """Place each partition on as many executors as replicas are wanted, or as there are.

    `executors` maps each to its weight, 1.0 for the usual one. The order of the arguments' items
    does not matter. While there is no executor at all, what was placed before is forgotten.

    Raises:
        ValueError: a weight is not above 0, the bound is below 1, or no replica is wanted.
    """
    _check(executors, replicas, load_bound)
    before = previous or Placement()
    wanted = sorted(set(partitions))
    count = min(replicas, len(executors))
    standing = {
        each: tuple(owner for owner in before.owners.get(each, ()) if owner in executors)[:count]
        for each in wanted
    }
    board = balancing.Board(standing, executors, count, load_bound)
    board.fill()
    board.level()
    owners = {each: tuple(board.owners[each]) for each in wanted}
    if previous is not None and owners == before.owners:
        return previous
    return Placement(before.epoch + 1, owners)


def moves(old: Placement, new: Placement) -> tuple[Move, ...]:
    """Return the partitions whose set of owners differs, in order of their ids."""
    return tuple(
        Move(each, gained, lost)
        for each in sorted(old.owners.keys() | new.owners.keys())
        for was, now in [(old.owners.get(each, ()), new.owners.get(each, ()))]
        for gained, lost in [(_without(now, was), _without(was, now))]
        if gained or lost
    )


def _without(these: Iterable[ExecutorId], those: Owners) -> Owners:
    return tuple(each for each in these if each not in those)


def _check(executors: Mapping[ExecutorId, float], replicas: int, load_bound: float) -> None:
    for executor_id, weight in executors.items():
        if not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"executor '{executor_id}' has weight {weight}; it must be above 0")
    if not load_bound >= 1:
        raise ValueError(f"the load bound is {load_bound}; it must be 1 or more")
    if replicas < 1:
        raise ValueError(f"{replicas} replicas are wanted; it must be 1 or more")
