"""The board on which partitions are placed: loads, bounds, and the moves that keep to them."""

import hashlib
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from caraway_core.ids import ExecutorId
from caraway_core.partitions.keys import PartitionId

_TWO_64 = float(1 << 64)


def score(executor_id: ExecutorId, weight: float, partition: PartitionId) -> float:
    """Rank an executor for a partition: the highest is the best; twice the weight wins twice."""
    text = "\0".join((executor_id, partition.dataset, partition.key))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    # The half keeps the logarithm away from zero at both ends.
    return weight / -math.log((int.from_bytes(digest) + 0.5) / _TWO_64)


def fair_shares(
    weights: Mapping[ExecutorId, float], partitions: int, replicas: int
) -> dict[ExecutorId, float]:
    """Share the replicas out by weight; no executor can hold a partition twice.

    What is above `partitions` for a heavy executor goes to the others.
    """
    shares: dict[ExecutorId, float] = {}
    open_ = sorted(weights, key=lambda each: (-weights[each], each))
    left = float(partitions * replicas)
    for position, each in enumerate(open_):
        total = math.fsum(weights[other] for other in open_[position:])
        shares[each] = min(left * weights[each] / total, float(partitions))
        left -= shares[each]
    return shares


class Board:
    """Owners while they are being changed. Everything goes in sorted order, so it is repeatable."""

    def __init__(
        self,
        standing: Mapping[PartitionId, tuple[ExecutorId, ...]],
        weights: Mapping[ExecutorId, float],
        replicas: int,
        bound: float,
    ) -> None:
        self.owners = {each: list(owners) for each, owners in standing.items()}
        self._replicas = replicas
        self._weights = dict(sorted(weights.items()))
        self._shares = fair_shares(weights, len(standing), replicas)
        self._caps = {e: min(len(standing), _up(bound * s)) for e, s in self._shares.items()}
        self._floors = {e: _least(s, bound) for e, s in self._shares.items()}
        self._held: dict[ExecutorId, set[PartitionId]] = {e: set() for e in self._weights}
        self._of_dataset: Counter[tuple[ExecutorId, str]] = Counter()
        self._sizes = Counter(each.dataset for each in standing)
        for each, owners in self.owners.items():
            for owner in owners:
                self._count(owner, each)

    def fill(self) -> None:
        """Give each partition the owners that it lacks."""
        for each in sorted(self.owners):
            for _ in range(self._replicas - len(self.owners[each])):
                self._add_owner(each)

    def level(self) -> None:
        """Move what must move: see the rules of `placement`."""
        # Once more while anything moved: what one took may make room for another.
        is_moving = True
        while is_moving:
            caught_up = [self._catch_up(each) for each in self._weights]
            is_moving = any(caught_up + [self._relieve(each) for each in self._weights])

    def _add_owner(self, partition: PartitionId) -> None:
        free = self._with_room(partition)
        if free:
            self._join(self._best(free, partition), partition)
            return
        for owner, moved in self._path(partition):
            self._join(owner, moved)

    def _with_room(self, partition: PartitionId) -> list[ExecutorId]:
        """Return who may own a partition as well: those that lack most, with room for its dataset.

        The second is left out where nobody has both.
        """
        free = [
            each
            for each in self._weights
            if len(self._held[each]) < self._caps[each] and each not in self.owners[partition]
        ]
        lack = max(map(self._lack, free), default=0)
        free = [each for each in free if self._lack(each) == lack]
        return [each for each in free if self._room_in(each, partition.dataset) > 0] or free

    def _lack(self, executor_id: ExecutorId) -> int:
        """Tell how badly an executor needs more: 2 when it is left behind, 1 below its share."""
        held = len(self._held[executor_id])
        return (held < self._floors[executor_id]) + (held < self._shares[executor_id])

    def _room_in(self, executor_id: ExecutorId, dataset: str) -> int:
        total = len(self.owners)
        share = self._shares[executor_id] * self._sizes[dataset] / total
        return _up(share) - self._of_dataset[executor_id, dataset]

    def _least_fitting(self, giver: ExecutorId) -> PartitionId:
        """Choose what to give away: of the most crowded dataset, what ranks the giver lowest."""
        return min(
            self._held[giver],
            key=lambda each: (
                self._room_in(giver, each.dataset),
                score(giver, self._weights[giver], each),
                each,
            ),
        )

    def _relieve(self, giver: ExecutorId) -> bool:
        is_above = len(self._held[giver]) > self._caps[giver]
        while len(self._held[giver]) > self._caps[giver]:
            given = self._least_fitting(giver)
            self._leave(giver, given)
            self._add_owner(given)
        return is_above

    def _catch_up(self, taker: ExecutorId) -> bool:
        if len(self._held[taker]) >= self._floors[taker]:
            return False
        takeable = self._takeable(taker)
        has_taken = False
        while len(self._held[taker]) < math.floor(self._shares[taker]):
            for left in takeable.values():
                # A copy of it was taken from another giver.
                while left and left[-1] in self._held[taker]:
                    left.pop()
            pairs = [pair for pair, left in takeable.items() if left and self._is_over(pair[0])]
            if not pairs:
                break
            pair = min(pairs, key=lambda each: self._need(taker, *each))
            has_taken = True
            taken = takeable[pair].pop()
            self._leave(pair[0], taken)
            self._join(taker, taken)
        return has_taken

    def _takeable(self, taker: ExecutorId) -> dict[tuple[ExecutorId, str], list[PartitionId]]:
        """Sort what others hold by giver and dataset; what ranks the taker highest comes last."""
        found: dict[tuple[ExecutorId, str], list[PartitionId]] = {}
        for giver in self._weights:
            for each in self._held[giver] - self._held[taker]:
                found.setdefault((giver, each.dataset), []).append(each)
        for partitions in found.values():
            partitions.sort(key=lambda each: (score(taker, self._weights[taker], each), each))
        return found

    def _need(self, taker: ExecutorId, giver: ExecutorId, dataset: str) -> tuple[object, ...]:
        """Order givers: first where the taker lacks a dataset most, and the giver has too much."""
        return (
            -self._room_in(taker, dataset) + self._room_in(giver, dataset),
            self._shares[giver] - len(self._held[giver]),
            giver,
            dataset,
        )

    def _is_over(self, executor_id: ExecutorId) -> bool:
        return len(self._held[executor_id]) > self._shares[executor_id]

    def _best(self, executors: Sequence[ExecutorId], partition: PartitionId) -> ExecutorId:
        return max(executors, key=lambda each: (score(each, self._weights[each], partition), each))

    def _path(self, partition: PartitionId) -> list[tuple[ExecutorId, PartitionId]]:
        """Find a chain of moves that frees a place, as everybody with room owns it already.

        The bounds always leave one: together they hold all replicas, and none is above the number
        of partitions.
        """
        came_from: dict[ExecutorId, tuple[ExecutorId | None, PartitionId]] = {}
        waiting: deque[tuple[ExecutorId | None, PartitionId]] = deque([(None, partition)])
        while waiting:
            giver, moved = waiting.popleft()
            for each in self._weights:
                if each in came_from or each in self.owners[moved]:
                    continue
                came_from[each] = (giver, moved)
                if len(self._held[each]) < self._caps[each]:
                    return self._unwind(each, came_from)
                waiting.extend((each, other) for other in sorted(self._held[each]))
        return []

    def _unwind(
        self,
        last: ExecutorId,
        came_from: Mapping[ExecutorId, tuple[ExecutorId | None, PartitionId]],
    ) -> list[tuple[ExecutorId, PartitionId]]:
        path = []
        taker: ExecutorId | None = last
        while taker is not None:
            giver, moved = came_from[taker]
            if giver is not None:
                self._leave(giver, moved)
            path.append((taker, moved))
            taker = giver
        return path

    def _join(self, executor_id: ExecutorId, partition: PartitionId) -> None:
        self.owners[partition].append(executor_id)
        self._count(executor_id, partition)

    def _leave(self, executor_id: ExecutorId, partition: PartitionId) -> None:
        self.owners[partition].remove(executor_id)
        self._held[executor_id].remove(partition)
        self._of_dataset[executor_id, partition.dataset] -= 1

    def _count(self, executor_id: ExecutorId, partition: PartitionId) -> None:
        self._held[executor_id].add(partition)
        self._of_dataset[executor_id, partition.dataset] += 1


def _least(share: float, bound: float) -> int:
    """Below how many an executor is left behind: never above what it would take."""
    return min(_up(share / bound), math.floor(share))


def _up(value: float) -> int:
    # Shares are sums of floats: what is a whole number but for rounding counts as one.
    return math.ceil(value - 1e-9)
