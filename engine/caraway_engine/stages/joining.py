"""Plans joins: colocated, by broadcast, after a reduction, or by hash exchange."""

from dataclasses import dataclass, replace

from substrait.algebra_pb2 import Expression, Rel

from caraway_engine.stages import joins
from caraway_engine.stages.graph import Measured, ReadMode, Stage
from caraway_engine.stages.parts import StagePart, joined
from caraway_engine.stages.planner import Planner
from caraway_engine.stages.relations import children, field_of, join_type, width, with_children


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of a join. If `may_be_spread`, tasks can divide it while each has the other side."""

    part: StagePart
    path: str
    keys: list[Expression]
    may_be_spread: bool


def visit_join(planner: Planner, rel: Rel, path: str) -> StagePart | None:
    """Plan a join, or return None while an input must be measured first."""
    inputs = children(rel)
    left, right = planner.visit(inputs[0], path + ".0"), planner.visit(inputs[1], path + ".1")
    if left is None or right is None:
        return None
    keys = joins.distinct(joins.keys(rel, width(inputs[0]), planner.functions))
    left_may, right_may = joins.spreads(rel)
    sides = (
        _Side(left, path + ".0", [key.left for key in keys], left_may),
        _Side(right, path + ".1", [key.right for key in keys], right_may),
    )
    placed = _placed(planner, rel, sides, [key.equality for key in keys])
    return placed and _put_together(planner, rel, *placed)


def _placed(
    planner: Planner, rel: Rel, sides: tuple[_Side, _Side], equalities: list[str]
) -> tuple[StagePart, StagePart] | None:
    """Bring matching rows together, and move as few rows as possible."""
    left, right = sides
    if left.part.is_everywhere and right.part.is_everywhere:
        return left.part, right.part
    least = min(left.part.size_bytes, right.part.size_bytes)
    if _are_aligned(left, right) and (
        left.part.layout == "partitions" or planner.cluster.may_join_in_place(least)
    ):
        return left.part, right.part
    for whole, spread in ((left, right), (right, left)):
        if whole.part.is_everywhere and spread.may_be_spread:
            return left.part, right.part
    small, large = sorted(sides, key=lambda side: side.part.size_bytes)
    if large.part.is_everywhere:
        small, large = large, small
    stage, size = _measured(planner, small)
    if size is None:
        return None
    swap = small is right
    placed = _with_small(planner, rel, small, large, stage, size, equalities)
    if placed is None:
        return None
    return (placed[1], placed[0]) if swap else placed


def _measured(planner: Planner, side: _Side) -> tuple[Stage, float | None]:
    stage, measured = planner.kept(side.part, side.path, "one side of a join", side.keys)
    return stage, None if measured is None else float(measured.size_bytes)


def _with_small(
    planner: Planner,
    rel: Rel,
    small: _Side,
    large: _Side,
    stage: Stage,
    size: float,
    equalities: list[str],
) -> tuple[StagePart, StagePart] | None:
    """Place the small side, which is made and measured, and the large side; return both."""
    cluster = planner.cluster
    fits = cluster.may_broadcast(size, large.part.size_bytes)
    whole = planner.reading(stage, ReadMode.ALL, size)
    if fits and large.may_be_spread:
        return whole, large.part
    if not small.keys:
        return whole, planner.gathered(large.part, large.path, "one side of a join")
    if _partition_keys(small, large):
        return _as_partitioned(planner, stage, small, large, size)
    if fits and join_type(rel) != "OUTER":
        return _reduced(planner, small, large, stage, size, equalities)
    count = stage.partitions(cluster.partitions(size))
    return (
        _kept_by_hash(planner, stage, small, size, count),
        _by_hash(planner, large.part, large, large.part.size_bytes, count),
    )


def _partition_keys(small: _Side, large: _Side) -> list[Expression]:
    """Return the keys of the small side for those by which the large side is partitioned."""
    if large.part.layout != "partitions" or large.part.group is not None:
        return []
    pairs = {field_of(mine): other for mine, other in zip(large.keys, small.keys, strict=True)}
    keys = [pairs.get(column) for column in large.part.keys or ()]
    known = [each for each in keys if each is not None]
    return known if len(known) == len(keys) else []


def _as_partitioned(
    planner: Planner, stage: Stage, small: _Side, large: _Side, size: float
) -> tuple[StagePart, StagePart]:
    """Partition the small side as the large one is, which stays where it is."""
    side = replace(small, keys=_partition_keys(small, large))
    own = planner.reading(stage, ReadMode.OWN, size)
    return _by_hash(planner, own, side, size, large.part.count), large.part


def _reduced(
    planner: Planner,
    small: _Side,
    large: _Side,
    stage: Stage,
    size: float,
    equalities: list[str],
) -> tuple[StagePart, StagePart] | None:
    """Keep those rows of the large side that have a match before exchanging it, and measure them.

    Correct for joins that keep rows of the large side only as matches of the small side.
    """
    cluster = planner.cluster
    part, path, note = large.part, large.path, "one side of a join"
    # A whole table has a match for nearly every row that refers to it.
    if not small.part.is_whole_table:
        whole = planner.reading(stage, ReadMode.ALL, size)
        part = _matching(planner, small, large, whole, equalities)
        path, note = large.path + "^", "rows that have a match"
    kept, measured = planner.kept(part, path, note, large.keys)
    if measured is None:
        return None
    left_size = float(measured.size_bytes)
    if cluster.may_broadcast(left_size, size):
        # Few rows are joined by one task, so that no other has to put results together.
        mode = ReadMode.OWN if cluster.policy.may_spread(size + left_size) else ReadMode.ALL
        own_small = planner.reading(stage, mode, size)
        return own_small, planner.reading(kept, ReadMode.ALL, left_size)
    count = kept.partitions(cluster.partitions(min(size, left_size)))
    return (
        _kept_by_hash(planner, stage, small, size, count),
        _kept_by_hash(planner, kept, large, left_size, count),
    )


def _matching(
    planner: Planner, small: _Side, large: _Side, whole: StagePart, equalities: list[str]
) -> StagePart:
    """Semi-join the large side with all rows of the small one."""
    pairs = list(zip(large.keys, small.keys, equalities, strict=True))
    mine, other = planner.naming.apart(large.part.rel, whole.rel, "LEFT_SEMI")
    rel = joins.reduction(mine, other, pairs, planner.functions)
    return StagePart(
        rel, large.part.size_bytes, large.part.layout, large.part.count,
        (*large.part.readings, *whole.readings), large.part.tables,
        colocated=large.part.colocated,
    )  # fmt: skip


def _kept_by_hash(
    planner: Planner, stage: Stage, side: _Side, size: float, count: int
) -> StagePart:
    """Read a side that was kept by its partitions; make them now if they are not so many."""
    if stage.hashed is not None and stage.hashed.count == count:
        return _partitions(planner, stage, side, size)
    return _by_hash(planner, planner.reading(stage, ReadMode.OWN, size), side, size, count)


def _by_hash(planner: Planner, part: StagePart, side: _Side, size: float, count: int) -> StagePart:
    stage = planner.hashed(part, side.path, side.keys, count, "one side of a hash join")
    return _partitions(planner, stage, side, size)


def _partitions(planner: Planner, stage: Stage, side: _Side, size: float) -> StagePart:
    reading = planner.reading(stage, ReadMode.PARTITION, size)
    columns = [field_of(each) for each in side.keys]
    known = tuple(column for column in columns if column is not None)
    keys = known if len(known) == len(columns) else None
    return StagePart(reading.rel, size, reading.layout, reading.count, reading.readings, keys=keys)


def _are_aligned(left: _Side, right: _Side) -> bool:
    """Return whether both sides are partitioned alike by keys of this join.

    True for hash partitions of an exchange, and for buckets of one group.
    """
    if left.part.is_everywhere or right.part.is_everywhere:
        return False
    if left.part.layout != right.part.layout or left.part.group != right.part.group:
        return False
    if left.part.count != right.part.count or not left.part.keys or not right.part.keys:
        return False
    pairs = {
        (field_of(mine), field_of(other)) for mine, other in zip(left.keys, right.keys, strict=True)
    }
    wanted = list(zip(left.part.keys, right.part.keys, strict=False))
    return len(left.part.keys) == len(right.part.keys) and all(pair in pairs for pair in wanted)


def _put_together(planner: Planner, rel: Rel, left: StagePart, right: StagePart) -> StagePart:
    size = min(max(left.size_bytes, right.size_bytes), planner.estimates.joined_bytes(rel))
    sides = planner.naming.apart(left.rel, right.rel, join_type(rel))
    part = joined(with_children(rel, sides), (left, right), size)
    groups = {each.group for each in (left, right) if not each.is_everywhere}
    group = groups.pop() if len(groups) == 1 else None
    if part.layout != "partitions" and group is None:
        return part
    keys = _keys_after(rel, left, right)
    colocated = part.colocated
    if group is not None and not left.is_everywhere and not right.is_everywhere:
        colocated = tuple(dict.fromkeys((*colocated, group)))
    return replace(part, keys=keys, group=group if keys else None, colocated=colocated)


def _keys_after(rel: Rel, left: StagePart, right: StagePart) -> tuple[int, ...] | None:
    """Return where the key columns are after the join; a side that is NULL-filled loses them."""
    type_ = join_type(rel)
    if type_ in joins.LEFT_MAY_BE_SPREAD and left.keys:
        return left.keys
    if type_ in joins.RIGHT_MAY_BE_SPREAD and right.keys:
        shift = 0 if type_.startswith("RIGHT_") else width(left.rel)
        return tuple(key + shift for key in right.keys)
    return None


__all__ = ["Measured", "visit_join"]
