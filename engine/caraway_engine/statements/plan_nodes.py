"""Walks the nodes of typed logical plans and their expressions.

In Python a node is a variant and an expression is a `RawExpr`. Two things are not visible: some
clauses of aggregates and windows, and the plans of subqueries. The clauses are read from the
expression's protobuf form; for subqueries see `subplans`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from datafusion.expr import Expr

from caraway_engine.statements import decorrelation, wire

UNKNOWN = "unknown"
"""The kind of a node that the engine does not type."""
SUBQUERIES = frozenset({"ScalarSubquery", "Exists", "InSubquery", "SetComparison"})
_LEAVES = frozenset(
    {"Column", "Literal", "ScalarVariable", "Placeholder", "Outer",
     "LambdaVariable", "ScalarSubquery", "Exists"}
)  # fmt: skip
_DEEP = 32
"""Operands are copies of everything below, so a deeper chain is read from its bytes instead."""


class HiddenError(Exception):
    """A part of a plan is not visible from Python."""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A node of a plan. `variant` is None if `kind` is unknown."""

    kind: str
    variant: Any
    plan: Any


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of an aggregate or a window function that Python hides, from protobuf."""

    filter: tuple[Any, ...] = ()
    partition_by: tuple[Any, ...] = ()
    order_by: tuple[Any, ...] = ()
    has_null_treatment: bool = False
    is_distinct: bool = False

    @property
    def parts(self) -> tuple[Any, ...]:
        """All expressions in the clauses."""
        return (*self.filter, *self.partition_by, *self.order_by)


@dataclass(frozen=True, slots=True)
class _Tags:
    """The field numbers of one protobuf message."""

    filter: int
    order_by: int
    null_treatment: int
    distinct: int
    partition_by: int | None = None


_BINARY, _OPERANDS = 4, 1
_GROUPING_SETS, _CUBE, _ROLLUP = 22, 23, 24
_CLAUSES = {
    "AggregateFunction": _Tags(filter=3, order_by=4, null_treatment=7, distinct=5),
    "WindowFunction": _Tags(
        filter=13, order_by=6, null_treatment=11, distinct=12, partition_by=5
    ),
}  # fmt: skip


def nodes(plan: object) -> Iterator[PlanNode]:
    """Yield the nodes of a plan, root first, without subqueries inside expressions.

    DISTINCT ON, whose expressions Python does not see, is returned as an aggregate.
    """
    waiting = [getattr(plan, "_raw_plan", plan)]
    while waiting:
        node = typed(waiting.pop())
        if node.kind == "Distinct" and not _is_distinct_all(node.plan):
            node = typed(decorrelation.frame(node.plan).optimized_logical_plan()._raw_plan)
        yield node
        waiting += reversed(node.plan.inputs())


def typed(raw: Any) -> PlanNode:
    """Return a plan's node in typed form."""
    try:
        variant = raw.to_variant()
    except Exception:  # noqa: BLE001 -- the engine raises plain exceptions
        return PlanNode(UNKNOWN, None, raw)
    return PlanNode(type(variant).__name__, variant, raw)


def _of_sort(variant: Any) -> list[object]:
    return [each.expr() for each in variant.sort_exprs()]


def _of_limit(variant: Any) -> list[object]:
    return [each for each in (variant.fetch(), variant.skip()) if each is not None]


def of_join(variant: Any) -> list[Any]:
    """Return the keys and the condition of a join."""
    found = [each for pair in variant.on() for each in pair]
    condition = variant.filter()
    return found if condition is None else [*found, condition]


def _of_values(variant: Any) -> list[object]:
    return [each for row in variant.values() for each in row]


def _none(_variant: object) -> list[object]:
    return []


_EXPRESSIONS: dict[str, Callable[[Any], list[Any]]] = {
    "Projection": lambda variant: variant.projections(),
    "Filter": lambda variant: [variant.predicate()],
    "Aggregate": lambda variant: [*variant.group_by_exprs(), *variant.aggregate_exprs()],
    "WindowExpr": lambda variant: variant.get_window_expr(),
    "Sort": _of_sort,
    "Limit": _of_limit,
    "Join": of_join,
    "Values": _of_values,
    "TableScan": lambda variant: variant.filters(),
    "Distinct": _none,
    "EmptyRelation": _none,
    "SubqueryAlias": _none,
    "Subquery": _none,
    "Union": _none,
    "Unnest": _none,
    "RecursiveQuery": _none,
    "Explain": _none,
    "Analyze": _none,
    "DescribeTable": _none,
    "DmlStatement": _none,
    "CopyTo": _none,
}


def expressions(node: PlanNode) -> list[Any]:
    """Return the expressions of a node itself.

    Raises:
        HiddenError: they are not visible from Python.
    """
    if node.kind not in _EXPRESSIONS:
        raise HiddenError(node.kind)
    return _EXPRESSIONS[node.kind](node.variant)


class ExpressionPart(NamedTuple):
    """An expression within another; `clauses` is set for aggregates and window functions."""

    kind: str
    expression: Any
    clauses: Clauses | None


def inside(expression: Any) -> Iterator[ExpressionPart]:
    """Yield an expression and its parts, except those inside subqueries.

    Raises:
        HiddenError: a part is not visible. All visible parts are yielded before.
    """
    hidden: HiddenError | None = None
    waiting = [(expression, 0)]
    while waiting:
        each, depth = waiting.pop()
        kind = each.variant_name()
        found: Clauses | None = None
        if kind not in _LEAVES:
            try:
                waiting += [(operand, depth + 1) for operand in _operands(each, kind, depth)]
                if kind in _CLAUSES:
                    found = clauses(each)
                    waiting += [(part, depth + 1) for part in found.parts]
            except HiddenError as exc:
                hidden = exc
        yield ExpressionPart(kind, each, found)
    if hidden:
        raise hidden


def _operands(expression: Any, kind: str, depth: int) -> Sequence[object]:
    if kind == "Unnest":
        return (expression.to_variant().expr(),)
    if kind == "GroupingSet":
        return grouping_operands(expression)
    if depth >= _DEEP and kind == "BinaryExpr" and (flat := _flattened(expression)):
        return flat
    try:
        operands: list[object] = expression.rex_call_operands()
    except Exception as exc:
        raise HiddenError(kind) from exc
    return operands


def clauses(expression: Any) -> Clauses:
    """Return the clauses of an aggregate or a window function.

    Raises:
        HiddenError: one contains a subquery or something else without a protobuf form.
    """
    while expression.variant_name() == "Alias":
        expression = expression.rex_call_operands()[0]
    tags = _CLAUSES[expression.variant_name()]
    message, fields = _fields(expression)
    by_tag: dict[int, list[bytes]] = {}
    for field in fields:
        by_tag.setdefault(field.tag, []).append(field.content(message))
    sorts = [next(iter(wire.fields(sort))).content(sort) for sort in by_tag.get(tags.order_by, ())]
    return Clauses(
        tuple(map(_decoded, by_tag.get(tags.filter, ()))),
        tuple(map(_decoded, by_tag.get(tags.partition_by or 0, ()))),
        tuple(map(_decoded, sorts)),
        tags.null_treatment in by_tag,
        tags.distinct in by_tag,
    )


def grouping_operands(expression: object) -> list[object]:
    """Return the expressions in GROUPING SETS, CUBE or ROLLUP.

    Raises:
        HiddenError: they are not visible.
    """
    message, fields = _fields(expression)
    inner = [field.content(message) for field in fields]
    (outer,) = wire.fields(message)
    if outer.tag == _GROUPING_SETS:
        inner = [field.content(each) for each in inner for field in wire.fields(each)]
    elif outer.tag not in (_CUBE, _ROLLUP):
        raise HiddenError("GroupingSet")
    return [_decoded(each) for each in inner]


def chained(expression: Any) -> list[object]:
    """Return the operands of a chain of ANDs or of ORs in order; others are chains of one."""
    if expression.variant_name() != "BinaryExpr":
        return [expression]
    operator = expression.to_variant().op()
    if operator not in ("AND", "OR"):
        return [expression]
    return _flattened(expression) or expression.rex_call_operands()


def _flattened(expression: object) -> list[object]:
    """Return the operands of a chain of one operator, or [] if it has no protobuf form."""
    try:
        message, fields = _fields(expression)
    except HiddenError:
        return []
    (outer,) = wire.fields(message)
    if outer.tag != _BINARY:
        return []
    return [_decoded(field.content(message)) for field in fields if field.tag == _OPERANDS]


def _fields(expression: Any) -> tuple[bytes, list[wire.Field]]:
    try:
        message: bytes = expression.to_bytes()
        (outer,) = wire.fields(message)
        return message, list(wire.fields(message, outer.inside, outer.end))
    except Exception as exc:
        raise HiddenError(expression.variant_name()) from exc


def _decoded(message: bytes) -> object:
    try:
        return Expr.from_bytes(message, decorrelation.decorrelating()).expr
    except Exception as exc:
        raise HiddenError(UNKNOWN) from exc


def _is_distinct_all(raw: Any) -> bool:
    """Return whether a node is DISTINCT and not DISTINCT ON."""
    made = decorrelation.frame(raw.inputs()[0]).distinct().logical_plan()
    return bool(made._raw_plan == raw)
