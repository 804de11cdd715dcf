"""Finds the parts of a plan whose joins may be in any order: inner, semi and anti joins.

A semi or anti join only filters rows of its left side. So it may be anywhere above the columns that
its conditions name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from datafusion import Expr

from caraway_engine.join_orders import expressions
from caraway_engine.join_orders.estimates import names_of
from caraway_engine.statements import plan_nodes
from caraway_engine.statements.plan_nodes import PlanNode

_FILTERING = {"LeftSemi": "semi", "LeftAnti": "anti"}
JoinOrder = tuple["JoinOrder", "JoinOrder"] | int
"""A tree of joins: pairs of shapes, and numbers of leaves, then of joins that filter."""


class NotMovableError(Exception):
    """The joins of a region have to stay as they are."""


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """A condition of a join; `pair` names its columns if it is an equality of two."""

    expression: Any
    pair: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Filtering:
    """A semi or anti join: `plan` is its right side."""

    plan: Any
    how: str
    conditions: Sequence[JoinCondition]


@dataclass(slots=True)
class JoinRegion:
    """Plans that are joined, the conditions of their inner joins, and joins that filter them."""

    leaves: list[object] = field(default_factory=list)
    conditions: list[JoinCondition] = field(default_factory=list)
    filtering: list[Filtering] = field(default_factory=list)
    shape: JoinOrder = 0

    @property
    def size(self) -> int:
        """The number of plans in the region."""
        return len(self.leaves) + len(self.filtering)


def region(raw: object) -> JoinRegion | None:
    """Return the region at the root of a plan, or None if there is no join to move.

    Raises:
        NotMovableError: a condition cannot be computed at another place.
    """
    if not _is_joined(raw):
        return None
    join_region = JoinRegion()
    join_region.shape = _Finder(join_region).shape(raw)
    filtered = len(join_region.leaves)
    join_region.shape = _numbered(join_region.shape, filtered)
    return join_region


class _Finder:
    def __init__(self, found: JoinRegion) -> None:
        self._found = found

    def shape(self, raw: Any) -> JoinOrder:
        """Add a plan to the region and return its shape; joins that filter have numbers below 0."""
        node = plan_nodes.typed(raw)
        if not _is_joined(raw):
            self._found.leaves.append(raw)
            return len(self._found.leaves) - 1
        if node.kind == "Projection":
            return self.shape(raw.inputs()[0])
        if node.kind == "Filter":
            inner = self.shape(raw.inputs()[0])
            self._found.conditions += _conditions([], node.variant.predicate())
            return inner
        left, right = raw.inputs()
        conditions = _conditions(node.variant.on(), node.variant.filter())
        how = _FILTERING.get(str(node.variant.join_type()))
        if how is None:
            shape = self.shape(left), self.shape(right)
            self._found.conditions += conditions
            return shape
        inner = self.shape(left)
        self._found.filtering.append(Filtering(right, how, conditions))
        return inner, -len(self._found.filtering)


def _numbered(shape: JoinOrder, leaves: int) -> JoinOrder:
    if isinstance(shape, int):
        return shape if shape >= 0 else leaves - 1 - shape
    return _numbered(shape[0], leaves), _numbered(shape[1], leaves)


def _is_joined(raw: Any) -> bool:
    """Return whether a plan is a join that may move, below nothing but columns and conditions."""
    node = plan_nodes.typed(raw)
    match node.kind:
        case "Join":
            kind = str(node.variant.join_type())
            return (kind == "Inner" or kind in _FILTERING) and not node.variant.null_equals_null()
        case "Projection":
            return is_plain(node) and _is_joined(raw.inputs()[0])
        case "Filter":
            return _is_joined(raw.inputs()[0])
    return False


def is_plain(node: PlanNode) -> bool:
    """Return whether a projection only chooses columns."""
    found = [expressions.column(each) for each in node.variant.projections()]
    return found == names_of(node)


def _conditions(pairs: Sequence[tuple[object, object]], rest: object) -> list[JoinCondition]:
    parts = [] if rest is None else list(expressions.conjuncts(rest))
    if not all(map(expressions.is_movable, [*parts, *(each for pair in pairs for each in pair)])):
        raise NotMovableError
    join_conditions = [
        JoinCondition(
            (Expr(mine) == Expr(its)).expr, _pair(expressions.column(mine), expressions.column(its))
        )
        for mine, its in pairs
    ]
    return join_conditions + [JoinCondition(each, None) for each in parts]


def _pair(mine: str | None, its: str | None) -> tuple[str, str] | None:
    return None if mine is None or its is None else (mine, its)
