"""Estimates how many rows a plan has, and how many different values its columns have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from caraway_engine.join_orders import expressions
from caraway_engine.join_orders.facts import ColumnFacts, FactsOf
from caraway_engine.statements import plan_facts, plan_nodes
from caraway_engine.statements.plan_nodes import PlanNode

_KEPT_BY_SEMI = 0.5


class NoFactsError(Exception):
    """Nothing is known of a table, so that no order is better than another."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated rows of a plan, and the facts of its columns by qualified name."""

    rows: float
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)

    def distinct(self, name: str) -> float:
        """Return the number of different values of a column."""
        return self.columns.get(name, ColumnFacts()).distinct_of(self.rows)

    def kept(self, share: float) -> "Estimate":
        """Return the estimate of a part of the rows."""
        rows = max(1.0, self.rows * share)
        return Estimate(rows, {name: each.within(rows) for name, each in self.columns.items()})

    def filtered(self, conditions: list[object]) -> "Estimate":
        """Return the estimate of the rows that pass all conditions."""
        share = prod(expressions.passing(each, self.columns, self.rows) for each in conditions)
        return self.kept(share)


def names_of(node: PlanNode) -> list[str]:
    """Return the qualified names of the columns of a node."""
    found: list[str] = node.variant.schema().field_names()
    return found


class Estimator:
    """Estimates plans over tables with these facts."""

    def __init__(self, facts_of: FactsOf) -> None:
        self._facts_of = facts_of

    def estimate(self, raw: Any) -> Estimate:
        """Estimate the rows of a plan.

        Raises:
            NoFactsError: nothing is known of one of its tables.
        """
        node = plan_nodes.typed(raw)
        match node.kind:
            case "TableScan":
                return self._scan(node)
            case "Filter":
                conditions = list(expressions.conjuncts(node.variant.predicate()))
                scan = plan_nodes.typed(raw.inputs()[0])
                if scan.kind == "TableScan":
                    # Do not count conditions twice that the scan has, too.
                    known = {str(each) for each in conditions}
                    others = [each for each in scan.variant.filters() if str(each) not in known]
                    return self._table(scan).filtered(conditions + others)
                return self.estimate(raw.inputs()[0]).filtered(conditions)
            case "Projection":
                return self._projection(node)
            case "SubqueryAlias":
                return self._renamed(node, self.estimate(raw.inputs()[0]))
            case "Aggregate":
                return self._aggregate(node)
            case "Join":
                return self._join(node)
            case "Limit":
                return self.estimate(raw.inputs()[0])
            case "Sort" | "Distinct" | "Union" | "WindowExpr":
                inputs = [self.estimate(each) for each in raw.inputs()]
                return Estimate(sum(each.rows for each in inputs), inputs[0].columns)
        raise NoFactsError(node.kind)

    def _scan(self, node: PlanNode) -> Estimate:
        return self._table(node).filtered(node.variant.filters())

    def _table(self, node: PlanNode) -> Estimate:
        facts = self._facts_of(plan_facts.table_name(*node.variant.fqn()))
        if facts is None:
            raise NoFactsError(node.variant.table_name())
        bare = [name for _, name in node.variant.projection()]
        found = zip(names_of(node), bare, strict=True)
        columns = {name: facts.columns[column] for name, column in found if column in facts.columns}
        return Estimate(max(1.0, facts.rows), columns)

    def _projection(self, node: PlanNode) -> Estimate:
        inner = self.estimate(node.plan.inputs()[0])
        columns = dict[str, ColumnFacts]()
        for name, each in zip(names_of(node), node.variant.projections(), strict=True):
            bare = each.rex_call_operands()[0] if each.variant_name() == "Alias" else each
            if (source := expressions.column(bare)) in inner.columns:
                columns[name] = inner.columns[str(source)]
        return Estimate(inner.rows, columns)

    def _renamed(self, node: PlanNode, inner: Estimate) -> Estimate:
        before = names_of(plan_nodes.typed(node.plan.inputs()[0]))
        pairs = zip(names_of(node), before, strict=True)
        known = {name: inner.columns[old] for name, old in pairs if old in inner.columns}
        return Estimate(inner.rows, known)

    def _aggregate(self, node: PlanNode) -> Estimate:
        inner = self.estimate(node.plan.inputs()[0])
        groups = node.variant.group_by_exprs()
        keys = [expressions.column(each) for each in groups]
        distinct = prod(inner.distinct(key or "") for key in keys)
        rows = max(1.0, min(inner.rows, distinct))
        pairs = zip(names_of(node), keys, strict=False)
        return Estimate(
            rows,
            {
                name: inner.columns[key].within(rows)
                for name, key in pairs
                if key is not None and key in inner.columns
            },
        )

    def _join(self, node: PlanNode) -> Estimate:
        left, right = map(self.estimate, node.plan.inputs())
        kind = str(node.variant.join_type())
        if kind.startswith("Left") and kind != "Left":
            return left.kept(_KEPT_BY_SEMI)
        if kind.startswith("Right") and kind != "Right":
            return right.kept(_KEPT_BY_SEMI)
        pairs = [
            tuple(expressions.column(each) or "" for each in pair) for pair in node.variant.on()
        ]
        # Several columns together have at most as many values as their side has rows.
        values = max(
            min(side.rows, prod(side.distinct(pair[place]) for pair in pairs))
            for place, side in enumerate((left, right))
        )
        rows = left.rows * right.rows / values
        least = {"Left": left.rows, "Right": right.rows, "Full": max(left.rows, right.rows)}
        rows = max(rows, least.get(kind, 1.0))
        both = {**left.columns, **right.columns}
        return Estimate(rows, {name: each.within(rows) for name, each in both.items()})
