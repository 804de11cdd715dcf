"""Chooses the shape of the joins of a region that reads, builds and makes the fewest rows."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from caraway_engine.join_orders.estimates import Estimate
from caraway_engine.join_orders.regions import JoinOrder

MOST = 10
"""The most plans of a region: for one more, three times as many shapes are compared."""
_BUILT, _PROBED, _MADE = 2.0, 1.0, 1.0
"""The cost of a row that a join puts into its hash table, looks up in it, or returns."""
_ANTI_LEAST = 0.1


@dataclass(frozen=True, slots=True)
class Edge:
    """An equality of columns of two plans, by their numbers."""

    left: int
    right: int
    columns: tuple[str, str]
    same: int
    """The number of the set of columns that are equal to each other."""


@dataclass(frozen=True, slots=True)
class ShapeProblem:
    """The estimates and conditions of a region.

    Numbers of joins that filter follow those of leaves. `needs` has the leaves that the conditions
    of each of these joins name. `others` are the leaves of each condition that is no equality, and
    the share of rows that passes it.
    """

    leaves: Sequence[Estimate]
    filtering: Sequence[Estimate]
    needs: Sequence[int]
    is_anti: Sequence[bool]
    filter_edges: Sequence[Sequence[Edge]]
    edges: Sequence[Edge]
    others: Sequence[tuple[int, float]]

    @property
    def whole(self) -> int:
        """The set of all plans, as bits."""
        return (1 << (len(self.leaves) + len(self.filtering))) - 1


@dataclass(frozen=True, slots=True)
class ShapeChoice:
    """A shape, with its estimated rows and cost."""

    shape: JoinOrder
    rows: float
    cost: float


Pick = Callable[[Sequence[ShapeChoice]], ShapeChoice]
"""Picks one of several shapes of the same plans."""


def cheapest(choices: Sequence[ShapeChoice]) -> ShapeChoice:
    """Return the choice with the lowest cost."""
    return min(choices, key=lambda each: each.cost)


def best(problem: ShapeProblem, pick: Pick = cheapest) -> ShapeChoice | None:
    """Return the shape whose parts were picked; None if some plans are joined by no equality."""
    found: dict[int, ShapeChoice] = {
        1 << number: ShapeChoice(number, each.rows, 0.0)
        for number, each in enumerate(problem.leaves)
    }
    for plans in range(1, problem.whole + 1):
        if plans in found:
            continue
        choices = [
            each
            for parts in _halves(plans, len(problem.leaves))
            if (each := _joined(problem, found, *parts)) is not None
        ]
        if choices:
            found[plans] = pick(choices)
    return found.get(problem.whole)


def cost_of(problem: ShapeProblem, shape: JoinOrder) -> ShapeChoice | None:
    """Return a given shape with its cost; None if it has a product."""
    found: dict[int, ShapeChoice] = {
        1 << number: ShapeChoice(number, each.rows, 0.0)
        for number, each in enumerate(problem.leaves)
    }

    def visit(part: JoinOrder) -> int | None:
        if isinstance(part, int):
            return 1 << part
        left, right = map(visit, part)
        if left is None or right is None:
            return None
        choice = _joined(problem, found, left, right)
        if choice is None:
            return None
        found[left | right] = choice
        return left | right

    plans = visit(shape)
    return None if plans is None else found[plans]


def _halves(plans: int, leaves: int) -> Iterator[tuple[int, int]]:
    """Yield the two parts of each join that makes these plans; one that filters is the second."""
    first = plans & -plans
    part = (plans - 1) & plans
    while part:
        if part & first:
            yield part, plans ^ part
        part = (part - 1) & plans


def _joined(
    problem: ShapeProblem, found: dict[int, ShapeChoice], left: int, right: int
) -> ShapeChoice | None:
    count = len(problem.leaves)
    mine, its = found.get(left), found.get(right)
    if right >> count and not right & (right - 1):
        number = right.bit_length() - 1 - count
        if mine is None or problem.needs[number] & ~left:
            return None
        return _filtered(problem, mine, number)
    if mine is None or its is None:
        return None
    share = _share(problem, left, right)
    if share is None:
        return None
    for leaves, passing in problem.others:
        if not leaves & ~(left | right) and leaves & left and leaves & right:
            share *= passing
    rows = max(1.0, mine.rows * its.rows * share)
    small, large = (mine, its) if mine.rows <= its.rows else (its, mine)
    cost = small.rows * _BUILT + large.rows * _PROBED + rows * _MADE + mine.cost + its.cost
    return ShapeChoice((small.shape, large.shape), rows, cost)


def _share(problem: ShapeProblem, left: int, right: int) -> float | None:
    """Return the share of all pairs of rows that the equalities of two parts let pass."""
    between: dict[tuple[int, int], dict[int, tuple[float, float]]] = defaultdict(dict)
    for edge in problem.edges:
        ends, columns = (edge.left, edge.right), edge.columns
        if left >> edge.right & 1 and right >> edge.left & 1:
            ends, columns = ends[::-1], columns[::-1]
        elif not (left >> edge.left & 1 and right >> edge.right & 1):
            continue
        mine, its = (
            problem.leaves[number].distinct(name)
            for number, name in zip(ends, columns, strict=True)
        )
        between[ends][edge.same] = mine, its
    if not between:
        return None
    share, seen = 1.0, set[int]()
    # Columns that are equal to each other count once, and with others of the same two tables.
    for (mine, its), by_set in sorted(between.items(), key=lambda each: -len(each[1])):
        values = [both for same, both in by_set.items() if same not in seen]
        seen |= by_set.keys()
        # Several columns together have at most as many values as their table has rows.
        most = [
            min(problem.leaves[number].rows, prod(each[side] for each in values))
            for side, number in enumerate((mine, its))
        ]
        share /= max(most)
    return share


def _filtered(problem: ShapeProblem, left: ShapeChoice, number: int) -> ShapeChoice:
    right = problem.filtering[number]
    share = 1.0
    for edge in problem.filter_edges[number]:
        mine = problem.leaves[edge.left].distinct(edge.columns[0])
        share = min(share, right.distinct(edge.columns[1]) / mine)
    if not problem.filter_edges[number]:
        share = 0.5
    if problem.is_anti[number]:
        share = max(_ANTI_LEAST, 1 - share)
    rows = max(1.0, left.rows * share)
    small, large = sorted((left.rows, right.rows))
    cost = left.cost + small * _BUILT + large * _PROBED + rows * _MADE
    return ShapeChoice((left.shape, len(problem.leaves) + number), rows, cost)
