"""Finds columns that DataFusion 55 takes for constants although joins or totals make them NULL.

A filter may fix a column to one value, and an outer join above it may make the column NULL. For the
engine the column stays constant. The same happens above grouping sets, whose totals are NULL. The
engine then drops the column from ORDER BY and assumes that rows are sorted by it. As a result,
GROUP BY, DISTINCT and windows return a group twice.

The optimized plan shows which columns the engine may take for constants. In the statement they are
rewritten so that they visibly depend on a column that is not constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from datafusion import LogicalPlan, SessionContext

from caraway_engine.known_faults import columns, joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree
from caraway_engine.statements import plan_nodes
from caraway_engine.statements.plan_nodes import HiddenError, PlanNode

_NOTHING: frozenset[str] = frozenset()
_PADDED = {"Left": (1,), "Right": (0,), "Full": (0, 1)}
"""The inputs of a join whose rows it may replace with NULLs."""
_FILTERED = {"LeftSemi": 0, "LeftAnti": 0, "LeftMark": 0, "RightSemi": 1, "RightAnti": 1,
             "RightMark": 1}  # fmt: skip
"""The input of a join whose rows it only filters or marks. They keep their order."""
_OUTER = ("Left", "LeftOuter", "Right", "RightOuter", "FullOuter")
# Both branches give the same value, but the optimizer cannot simplify either condition.
_WITNESSED = "CASE WHEN {conditions} THEN __column ELSE __column END"
_WITNESS = "nullif(__w{number}, NULL) IS NULL"
_BY_CHANCE = "CASE WHEN random() < 0 THEN __column ELSE __column END"
_NOT_SORTED = "nullif(__column, NULL)"


@dataclass(frozen=True, slots=True)
class AssumedConstants:
    """The names of columns that the engine may wrongly take for constants.

    `padded` columns are below outer joins, and `totalled` columns below grouping sets. `is_sorted`
    means that there are grouping sets over sorted rows, `computes_keys` that a key of some is a
    literal, or a constant that is computed.
    """

    padded: frozenset[str] = _NOTHING
    totalled: frozenset[str] = _NOTHING
    is_sorted: bool = False
    computes_keys: bool = False

    def __bool__(self) -> bool:
        return bool(self.padded or self.totalled or self.is_sorted or self.computes_keys)


def of_plan(context: SessionContext, optimized: object) -> AssumedConstants:
    """Find constants below outer joins and grouping sets of an optimized plan."""
    looked = _Look(context)
    looked.at(getattr(optimized, "_raw_plan", optimized))
    padded, totalled = frozenset(looked.padded), frozenset(looked.totalled)
    return AssumedConstants(padded, totalled, looked.is_sorted, looked.computes_keys)


class _Look:
    """Collects possible constants from the leaves of a plan upwards, by unqualified name."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self.padded: set[str] = set()
        self.totalled: set[str] = set()
        self.is_sorted = False
        self.computes_keys = False

    def at(self, raw: Any) -> tuple[frozenset[str], bool]:
        """Return the constants of a plan, and whether its rows may be sorted."""
        below = [self.at(each) for each in raw.inputs()]
        constants = frozenset[str]().union(*(names for names, _ in below))
        is_sorted = any(each for _, each in below)
        node = plan_nodes.typed(raw)
        match node.kind:
            case "Filter" | "TableScan":
                constants |= _columns(plan_nodes.expressions(node))
            case "Join":
                self._join(node, [names for names, _ in below])
                kept = _FILTERED.get(str(node.variant.join_type()))
                is_sorted = is_sorted if kept is None else below[kept][1]
                constants |= _equals(node, constants)
            case "Sort" | "WindowExpr":
                is_sorted = True
            case "Projection" | "Aggregate":
                self._group(node, constants, is_sorted)
                constants = self._computed(node, constants)
            case "Union":
                constants = self._united(raw, [names for names, _ in below])
            case "Values" | "EmptyRelation":
                constants = frozenset(self._names(raw))
        return constants, is_sorted

    def _join(self, node: PlanNode, below: Sequence[frozenset[str]]) -> None:
        sides = _PADDED.get(str(node.variant.join_type()), ())
        # Without columns in its condition, a join that pads one side pads all rows or none.
        if len(sides) > 1 or _columns(plan_nodes.expressions(node)):
            for side in sides:
                self.padded |= below[side]

    def _group(self, node: PlanNode, constants: frozenset[str], is_sorted: bool) -> None:
        keys = node.variant.group_by_exprs() if node.kind == "Aggregate" else ()
        if any(each.variant_name() == "GroupingSet" for each in keys):
            self.totalled |= constants
            self.is_sorted |= is_sorted
            self.computes_keys |= any(map(_computes_constant, keys))

    def _computed(self, node: PlanNode, constants: frozenset[str]) -> frozenset[str]:
        """Return the output columns that depend only on constants."""
        is_projection = node.kind == "Projection"
        made = node.variant.projections() if is_projection else node.variant.group_by_exprs()
        names = self._names(node.plan)
        if not made:
            return frozenset(names)
        if any(each.variant_name() == "GroupingSet" for each in made):
            return constants
        pairs = zip(names, made, strict=False)
        return frozenset(name for name, each in pairs if _columns([each]) <= constants)

    def _united(self, raw: Any, below: Sequence[frozenset[str]]) -> frozenset[str]:
        """Return the columns of a UNION that are constant on one of its sides."""
        names, sides = self._names(raw), zip(raw.inputs(), below, strict=True)
        return frozenset(
            name
            for side, constants in sides
            if constants
            for name, own in zip(names, self._names(side), strict=False)
            if own in constants
        )

    def _names(self, raw: object) -> list[str]:
        frame = self._context.create_dataframe_from_logical_plan(LogicalPlan(raw))
        return list(frame.schema().names)


def _columns(expressions: Sequence[Any]) -> frozenset[str]:
    found: set[str] = set()
    for expression in expressions:
        try:
            for part in plan_nodes.inside(expression):
                if part.kind == "Column":
                    found.add(part.expression.to_variant().name())
        except HiddenError:  # Visible parts were collected; subqueries are joins by now.
            continue
    return frozenset(found)


def _computes_constant(key: Any) -> bool:
    """Return whether a key of grouping sets is a literal, or computed from no column."""
    if key.variant_name() != "GroupingSet":
        return False
    try:
        operands = plan_nodes.grouping_operands(key)
    except HiddenError:
        return True
    return not all(_columns([each]) for each in operands)


def _equals(node: PlanNode, constants: frozenset[str]) -> frozenset[str]:
    pairs = [_columns(pair) for pair in node.variant.on()]
    return frozenset[str]().union(*(pair for pair in pairs if pair & constants))


def mend(scope: SelectScope, types: Types, believed: AssumedConstants, is_view: bool) -> bool:
    """Hide constants from the engine by rewriting their columns; return whether there were any.

    Raises:
        InvalidQueryError: the columns of a `*` are not known.
    """
    is_mended = _mend_totals(scope, believed)
    joins = [each for each in scope.joins() if syntax.kind(each["join_operator"]) in _OUTER]
    if not joins or not (is_view or believed.padded):
        return is_mended
    if scope.is_top and not is_view and not _orders_or_groups(scope):
        return is_mended
    witnesses = _witnesses(scope, types, joins)
    names = believed.padded
    if is_view:
        # A statement that reads a view may fix its keys to one value.
        names |= {columns.spelling(each)[-1] for each in witnesses}
    is_shown_whole = scope.is_top and not is_view and not scope.select["distinct"]
    if _has_wildcard(scope) and not (is_shown_whole and scope.is_alone()):
        _expand(scope, types, names)
    form = _form(witnesses, names)
    return columns.replace(scope, names, lambda _column: form) or is_mended


def _orders_or_groups(scope: SelectScope) -> bool:
    select = scope.select
    is_windowed = any("partition_by" in each for each in scope.expressions())
    sorts = bool(scope.query["order_by"]) or not scope.is_alone()
    return bool(select["distinct"]) or scopes.is_grouped(scope) or is_windowed or sorts


def _form(witnesses: list[Tree], names: frozenset[str]) -> Tree:
    """Return an expression with the value of `__column` that is not taken for a constant."""
    known = {columns.spelling(each)[-1] for each in witnesses}
    if not known - names:
        return syntax.filled(_BY_CHANCE)
    conditions = [_WITNESS.format(number=number) for number in range(len(witnesses))]
    text = _WITNESSED.format(conditions=" OR ".join(conditions))
    return syntax.filled(text, **{f"w{number}": each for number, each in enumerate(witnesses)})


def _witnesses(scope: SelectScope, types: Types, joins: list[Tree]) -> list[Tree]:
    """Return the columns that show whether a row was matched: all that the conditions name."""
    found: dict[str, Tree] = {}
    for join in joins:
        on = scopes.on(join)
        compared = columns.named(on) if on else joining.shared_columns(scope, types, join)
        found.update({repr(columns.spelling(each)): each for each in compared})
    return list(found.values())


def _has_wildcard(scope: SelectScope) -> bool:
    items = scope.select["projection"]
    return any("Wildcard" in item or "QualifiedWildcard" in item for item in items)


def _expand(scope: SelectScope, types: Types, names: frozenset[str]) -> None:
    """Expand the columns of `*`; rewritten columns keep their names."""
    items: list[Tree] = []
    for item in scope.select["projection"]:
        if "Wildcard" not in item and "QualifiedWildcard" not in item:
            items.append(item)
            continue
        for column in joining.written_out(scope, types, item):
            name = columns.spelling(column)[-1]
            alias = {"expr": column, "alias": syntax.identifier(name)}
            items.append({"ExprWithAlias": alias} if name in names else {"UnnamedExpr": column})
    scope.select["projection"] = items


def _mend_totals(scope: SelectScope, believed: AssumedConstants) -> bool:
    """Hide from grouping sets that a key is constant or sorted."""
    sets = scopes.grouping_sets(scope)
    if not sets or not (believed.totalled or believed.is_sorted):
        return False
    keys = {name for each in columns.named(sets) for name in columns.spelling(each)[-1:]}
    others = [
        each for each in columns.named(sets) if columns.spelling(each)[-1] not in believed.totalled
    ]
    constant = _form(others[:1], believed.totalled)
    not_sorted = syntax.filled(_NOT_SORTED)

    def form(column: Tree) -> Tree:
        return constant if columns.spelling(column)[-1] in believed.totalled else not_sorted

    return columns.replace(
        scope, believed.totalled | keys if believed.is_sorted else believed.totalled, form
    )
