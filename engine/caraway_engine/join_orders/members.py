"""The plans of a region: the problem that they are, and their joins in any shape."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, Expr, SessionContext

from caraway_engine.join_orders import expressions, failing, keys, rebuilding
from caraway_engine.join_orders.choosing import Edge, ShapeProblem
from caraway_engine.join_orders.estimates import Estimate, names_of
from caraway_engine.join_orders.regions import JoinCondition, JoinOrder, JoinRegion, NotMovableError
from caraway_engine.statements import plan_nodes


@dataclass(frozen=True, slots=True)
class KeySource:
    """A plan with few values of a column, and how many."""

    plan: Any
    column: Expr
    distinct: float


class Members:
    """The plans of a region by number: leaves, then the right sides of joins that filter."""

    def __init__(
        self, context: SessionContext, region: JoinRegion, estimates: Sequence[Estimate]
    ) -> None:
        """Take the plans.

        Raises:
            NotMovableError: two plans have a column of the same name, or a condition has none or
                might fail.
        """
        self.plans = [*region.leaves, *(each.plan for each in region.filtering)]
        self._region = region
        self._estimates = estimates
        self._count = len(region.leaves)
        self._owners: dict[str, int] = {}
        self._columns: dict[str, Expr] = {}
        self._types: dict[str, pa.DataType] = {}
        self._frames: list[DataFrame] = []
        for number, plan in enumerate(self.plans):
            frame = rebuilding.frame(context, plan)
            self._frames.append(frame)
            schema = frame.schema()
            names = names_of(plan_nodes.typed(plan))
            columns = frame.find_qualified_columns(*schema.names)
            for name, column, field in zip(names, columns, schema, strict=True):
                if name in self._owners:
                    raise NotMovableError
                self._owners[name] = number
                self._columns[name], self._types[name] = column, field.type
        filtering = (each for join in region.filtering for each in join.conditions)
        for each in (*region.conditions, *filtering):
            if not failing.cannot_fail(each.expression, self._type_of):
                raise NotMovableError
        self._same = self._equal_columns()
        self._doubled = self._doubled_sets()
        self._leaves = [self._leaves_of(each) for each in region.conditions]
        self._implied = list(self._implied_edges())
        self.problem = self._problem()

    def columns_of(self, raw: object) -> list[Expr]:
        """Return the columns of the region's plan, in their order."""
        return [self._columns[name] for name in names_of(plan_nodes.typed(raw))]

    def joined_columns(self, number: int) -> list[str]:
        """Return the columns of a plan that are equal to columns of others."""
        return [name for name in self._same if self._owners[name] == number]

    def fewest(self, number: int, name: str) -> KeySource | None:
        """Return another plan that has all values of a column that are joined, and the fewest.

        A plan on the right of an anti join is none.
        """
        sources = [
            KeySource(self.plans[owner], self._columns[each], self._estimates[owner].distinct(each))
            for each, same in self._same.items()
            if same == self._same[name]
            and (owner := self._owners[each]) != number
            and not self._is_anti(owner)
            and keys.is_simple(self.plans[owner])
        ]
        return min(sources, key=lambda each: each.distinct, default=None)

    def shaped(self, shape: JoinOrder, frames: Sequence[DataFrame]) -> DataFrame:
        """Join plans in a shape."""
        return self._shaped(shape, frames)[0]

    def _shaped(self, shape: JoinOrder, frames: Sequence[DataFrame]) -> tuple[DataFrame, int]:
        if isinstance(shape, int):
            own = [
                Expr(condition.expression)
                for condition, leaves in zip(self._region.conditions, self._leaves, strict=True)
                if leaves == 1 << shape
            ]
            frame = frames[shape]
            for condition in own:
                frame = frame.filter(condition)
            return frame, 1 << shape
        left, mine = self._shaped(shape[0], frames)
        if isinstance(shape[1], int) and shape[1] >= self._count:
            join = self._region.filtering[shape[1] - self._count]
            conditions = [each.expression for each in join.conditions]
            how: object = join.how
            return left.join_on(frames[shape[1]], *map(Expr, conditions), how=how), mine
        right, its = self._shaped(shape[1], frames)
        return left.join_on(right, *self._between(mine, its)), mine | its

    def _between(self, mine: int, its: int) -> Iterator[Expr]:
        """Yield the conditions of a join of two sets of leaves."""
        covered = set[int]()
        for condition, leaves in zip(self._region.conditions, self._leaves, strict=True):
            if leaves & ~(mine | its) or not leaves & mine or not leaves & its:
                continue
            same = self._same.get(condition.pair[0]) if condition.pair else None
            if same is None or same not in covered or same in self._doubled:
                yield Expr(condition.expression)
            if same is not None:
                covered.add(same)
        for edge in self._implied:
            one, other = 1 << edge.left, 1 << edge.right
            is_between = (one & mine and other & its) or (one & its and other & mine)
            if is_between and edge.same not in covered:
                covered.add(edge.same)
                left, right = (self._columns[name] for name in edge.columns)
                yield left == right

    def _type_of(self, expression: object) -> pa.DataType | None:
        """Return the type of an expression over one plan."""
        owners = {self._owners.get(name) for name in expressions.columns(expression)}
        if len(owners) != 1 or (owner := owners.pop()) is None:
            return None
        return self._frames[owner].select(Expr(expression)).schema().field(0).type

    def _leaves_of(self, condition: JoinCondition) -> int:
        found = 0
        for name in expressions.columns(condition.expression):
            owner = self._owners.get(name)
            if owner is None or owner >= self._count:
                raise NotMovableError
            found |= 1 << owner
        if not found:
            raise NotMovableError
        return found

    def _equal_columns(self) -> dict[str, int]:
        """Return the number of the set of equal columns of each column that is in one."""
        sets: dict[str, set[str]] = {}
        filtering = (
            condition
            for join in self._region.filtering
            if join.how == "semi"
            for condition in join.conditions
        )
        for condition in (*self._region.conditions, *filtering):
            if condition.pair is None or not self._is_exact(condition.pair):
                continue
            both = set[str]().union(*(sets.get(name, {name}) for name in condition.pair))
            sets.update(dict.fromkeys(both, both))
        numbers = {id(each): number for number, each in enumerate(sets.values())}
        return {name: numbers[id(each)] for name, each in sets.items()}

    def _doubled_sets(self) -> frozenset[int]:
        """Return the sets with two columns of one plan, which only all conditions make equal."""
        counts = Counter((same, self._owners[name]) for name, same in self._same.items())
        return frozenset(same for (same, _), count in counts.items() if count > 1)

    def _is_exact(self, pair: tuple[str, str]) -> bool:
        """Return whether equality of two columns is that of their values."""
        kinds = [self._types.get(name) for name in pair]
        return kinds[0] == kinds[1] and kinds[0] is not None and _is_exact(kinds[0])

    def _is_anti(self, number: int) -> bool:
        return number >= self._count and self._region.filtering[number - self._count].how == "anti"

    def _implied_edges(self) -> Iterator[Edge]:
        """Yield equalities between leaves that follow from others."""
        together = defaultdict[int, list[str]](list)
        for name, same in self._same.items():
            if self._owners[name] < self._count:
                together[same].append(name)
        for same, names in together.items():
            for one, other in combinations(names, 2):
                if self._owners[one] != self._owners[other]:
                    yield Edge(self._owners[one], self._owners[other], (one, other), same)

    def _problem(self) -> ShapeProblem:
        count, region = self._count, self._region
        edges, others = list(self._implied), list[tuple[int, float]]()
        for number, (condition, leaves) in enumerate(
            zip(region.conditions, self._leaves, strict=True)
        ):
            pair = condition.pair
            if pair is None:
                rows = max(each.rows for each in self._estimates)
                known = {
                    name: facts
                    for each in self._estimates[:count]
                    for name, facts in each.columns.items()
                }
                passing = expressions.passing(condition.expression, known, rows)
                others.append((leaves, passing))
            elif pair[0] not in self._same and leaves.bit_count() > 1:
                ends = self._owners[pair[0]], self._owners[pair[1]]
                edges.append(Edge(*ends, pair, -1 - number))
        needs, filter_edges = [], []
        for join in region.filtering:
            needed, found = 0, list[Edge]()
            for condition in join.conditions:
                for name in expressions.columns(condition.expression):
                    if self._owners[name] < count:
                        needed |= 1 << self._owners[name]
                if condition.pair is not None:
                    pair = condition.pair
                    if self._owners[pair[0]] >= count:
                        pair = pair[::-1]
                    if self._owners[pair[0]] < count:
                        found.append(Edge(self._owners[pair[0]], 0, pair, 0))
            if not needed:
                raise NotMovableError
            needs.append(needed)
            filter_edges.append(found)
        is_anti = [each.how == "anti" for each in region.filtering]
        leaves_, filtering = self._estimates[:count], self._estimates[count:]
        return ShapeProblem(leaves_, filtering, needs, is_anti, filter_edges, edges, others)


def _is_exact(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_date(kind)
        or types.is_string(kind)
        or types.is_string_view(kind)
        or types.is_decimal(kind)
    )
