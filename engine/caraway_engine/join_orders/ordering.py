"""Orders the joins of a plan, and gives groupings only the rows whose groups are joined."""

import logging
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from typing import Any

import pyarrow as pa
from datafusion import DataFrame, Expr, LogicalPlan, SessionConfig, SessionContext

from caraway_engine.errors import engine_errors
from caraway_engine.join_orders import choosing, keys, rebuilding, regions
from caraway_engine.join_orders.estimates import Estimator, NoFactsError
from caraway_engine.join_orders.facts import FactsOf
from caraway_engine.join_orders.members import Members
from caraway_engine.join_orders.regions import Filtering, JoinCondition, JoinRegion, NotMovableError

logger = logging.getLogger(__name__)
_RULES = frozenset({"extract_equijoin_predicate", "optimize_projections", "push_down_limit"})
_AFTER = "logical_plan after "


@dataclass(frozen=True, slots=True)
class OrderPolicy:
    """When a plan is changed.

    A shape must cost the share `better` of the present one at most, and `worth` rows less. A
    grouping of `many_rows` gets fewer of them if the share `few_groups` of its groups is left.
    """

    better: float = 0.9
    worth: float = 50_000.0
    few_groups: float = 0.3
    many_rows: float = 50_000.0
    pick: choosing.Pick = choosing.cheapest


DEFAULT = OrderPolicy()


def ordered(
    optimized: object, facts_of: FactsOf, policy: OrderPolicy = DEFAULT
) -> LogicalPlan | None:
    """Return a better optimized plan with the same rows, or None if none is known.

    Any doubt keeps the plan as it is: the engine refuses names that it cannot resolve, and the new
    plan must have the same columns.
    """
    try:
        context = _context()
        raw = getattr(optimized, "_raw_plan", optimized)
        made = _Ordering(context, facts_of, policy).frame(raw)
        if made is None or not _is_same(made.schema(), rebuilding.frame(context, raw).schema()):
            return None
        plan = made.optimized_logical_plan()
        found = context.create_dataframe_from_logical_plan(plan).schema()
        return plan if _is_same(found, made.schema()) else None
    except Exception as exc:  # noqa: BLE001 -- the engine raises plain exceptions
        note_kept(exc)
        return None


def note_kept(exc: Exception) -> None:
    """Log why a statement keeps its joins, with its ids: once for each kind of exception."""
    _log(engine_errors.kind_of(exc))


@lru_cache(maxsize=64)
def _log(kind: str) -> None:
    logger.info("joins keep their order", extra={"kind": kind})


def _is_same(one: pa.Schema, other: pa.Schema) -> bool:
    return bool(one.equals(other, check_metadata=True))


@cache
def _context() -> SessionContext:
    """Return the context that finishes plans: it moves no join."""
    context = SessionContext(SessionConfig())
    for step in context.sql("EXPLAIN VERBOSE SELECT 1").to_pydict()["plan_type"]:
        rule = step.removeprefix(_AFTER)
        if rule != step and rule not in _RULES:
            context.remove_optimizer_rule(rule)
    return context


class _Ordering:
    def __init__(self, context: SessionContext, facts_of: FactsOf, policy: OrderPolicy) -> None:
        self._context = context
        self._policy = policy
        self._estimator = Estimator(facts_of)
        self._numbers = count(1)

    def frame(self, raw: Any) -> DataFrame | None:
        """Return a plan with better joins, or None if it stays as it is."""
        try:
            if (region := regions.region(raw)) is not None:
                return self._joined(raw, region)
        except (NoFactsError, NotMovableError):
            pass
        inputs = raw.inputs()
        made = [self.frame(each) for each in inputs]
        if all(each is None for each in made):
            return None
        return rebuilding.rebuilt(
            raw,
            [
                rebuilding.frame(self._context, before) if after is None else after
                for before, after in zip(inputs, made, strict=True)
            ],
        )

    def _joined(self, raw: object, region: JoinRegion, *, is_new: bool = False) -> DataFrame | None:
        """Return the joins of a region in a better shape, or None if they stay as they are."""
        if region.size > choosing.MOST:
            raise NotMovableError
        plans = [*region.leaves, *(each.plan for each in region.filtering)]
        estimates = [self._estimator.estimate(each) for each in plans]
        if sum(each.rows for each in estimates) < self._policy.worth:
            raise NotMovableError
        members = Members(self._context, region, estimates)
        made = [self._fewer(members, number) or self.frame(p) for number, p in enumerate(plans)]
        before = choosing.cost_of(members.problem, region.shape)
        best = choosing.best(members.problem, self._policy.pick)
        shape = region.shape
        if best and before and before.cost - best.cost > self._policy.worth:
            if best.cost <= before.cost * self._policy.better:
                shape = best.shape
        if is_new and best:
            shape = best.shape
        if shape == region.shape and not is_new and all(each is None for each in made):
            return None
        frames = [
            rebuilding.frame(self._context, plan) if new is None else new
            for plan, new in zip(plans, made, strict=True)
        ]
        return members.shaped(shape, frames).select(*members.columns_of(raw))

    def _fewer(self, members: Members, number: int) -> DataFrame | None:
        """Return a plan that groups only rows whose groups are joined, if those are few."""
        plan, few = members.plans[number], self._policy.few_groups
        for name in members.joined_columns(number):
            grouping = keys.grouping(plan, name)
            if grouping is None:
                continue
            rows = self._estimator.estimate(grouping.rows)
            source = members.fewest(number, name)
            if source is None or rows.rows < self._policy.many_rows:
                continue
            groups = min(rows.distinct(grouping.column), rows.rows * few)
            if source.distinct > groups * few:
                continue
            return self._narrowed(plan, grouping, source.plan, source.column)
        return None

    def _narrowed(
        self, plan: object, grouping: keys.Grouping, source: object, column: Expr
    ) -> DataFrame:
        """Return a plan whose grouping reads only rows with the values of a column."""
        alias = f"__keys_{next(self._numbers)}"
        values = rebuilding.frame(self._context, source).select(column.alias("value")).alias(alias)
        (value,) = values.find_qualified_columns("value")
        pair = grouping.column, f"{alias}.value"
        filtering = Filtering(
            values.logical_plan()._raw_plan,
            "semi",
            [JoinCondition((Expr(grouping.expression) == value).expr, pair)],
        )
        region = _region_of(grouping.rows)
        region.shape = region.shape, region.size
        region.filtering.append(filtering)
        rows = self._joined(grouping.rows, region, is_new=True)
        assert rows is not None
        return _above(plan, grouping, rows)


def _region_of(raw: object) -> JoinRegion:
    try:
        found = regions.region(raw)
    except NotMovableError:
        found = None
    return JoinRegion([raw]) if found is None else found


def _above(raw: Any, grouping: keys.Grouping, rows: DataFrame) -> DataFrame:
    """Return a plan with other rows for its grouping."""
    (inner,) = raw.inputs()
    made = rows if raw == grouping.plan else _above(inner, grouping, rows)
    return rebuilding.rebuilt(raw, [made])
