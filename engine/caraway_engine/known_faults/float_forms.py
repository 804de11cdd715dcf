"""Gives floats one NaN and one zero where the engine compares or sorts them.

The engine sorts -0.0 before 0.0, and a NaN with a sign before all numbers; that NaN equals no other
one. The processors of x86 give the sign to each NaN that they compute, such as that of 0.0 / 0.0.
"""

from collections.abc import Iterator

import pyarrow as pa

from caraway_engine.known_faults import scopes, sort_keys, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.sort_keys import NameOf, WrappedSortKey
from caraway_engine.known_faults.syntax import Tree

SQL_TYPES = {pa.float32(): "FLOAT", pa.float64(): "DOUBLE"}
COMPARISONS = frozenset({"Eq", "NotEq", "Lt", "LtEq", "Gt", "GtEq"})
# Also hides a column from pruning by statistics, which do not cover NaN.
ONE_NAN = "nanvl(__a, CAST('NaN' AS {type}))"
# Subtracting -0.0 turns it into 0.0. The optimizer would put a column for 0.0 where they are equal.
ONE_FORM = "nanvl(__a - CAST('-0' AS {type}), CAST('NaN' AS {type}))"
_PLAIN = frozenset(
    {"Value", "TypedString", "Identifier", "CompoundIdentifier", "Interval", "Subquery"}
)
_EXTREMES = frozenset({"min", "max"})
_OF_SEVERAL = frozenset({"greatest", "least"})


def candidates(scope: SelectScope) -> list[Tree]:
    """Return the expressions whose types decide whether to rewrite anything."""
    return [tree for each in scope.expressions() for tree, _ in _compared(each)]


def mend(scope: SelectScope, types: Types) -> bool:
    """Compare floats by one form; return whether there were any."""
    pairs = [pair for each in scope.expressions() for pair in _compared(each)]
    known = types.types_of(scope, [tree for tree, _ in pairs])
    changes = [
        (*pair, type_) for pair, type_ in zip(pairs, known, strict=True) if type_ in SQL_TYPES
    ]
    for tree, form, type_ in changes:
        inner = dict(tree)
        # Other remedies look for it.
        scope.add(inner, type_)
        syntax.replace(tree, syntax.filled(form.format(type=SQL_TYPES[type_]), a=inner))
    return bool(changes)


def mend_sort_keys(scope: SelectScope, types: Types, name_of: NameOf) -> bool:
    """Sort floats by one form; return whether there were any."""
    if syntax.kind(scope.select["distinct"] or {}) == "On":
        return False
    return _wrapped(sort_keys.keys(scope, types, name_of))


def mend_sets(statement: Tree, types: Types) -> bool:
    """Sort floats by one form in set operations; return whether there were any."""
    return _wrapped(key for _, key in sort_keys.of_sets(statement, types))


def filled(form: str, tree: Tree, type_: pa.DataType) -> Tree:
    """Return a form of a float."""
    return syntax.filled(form.format(type=SQL_TYPES[type_]), a=dict(tree))


def _wrapped(keys: Iterator[WrappedSortKey]) -> bool:
    changes = [
        each.wrap(ONE_FORM.format(type=SQL_TYPES[each.type_]))
        for each in list(keys)
        if each.type_ in SQL_TYPES
    ]
    return any(changes)


def _compared(tree: Tree) -> Iterator[tuple[Tree, str]]:
    """Yield the parts of an expression that it compares, and the form that they need.

    Constants have one form. The engine compares zeros of both signs as equal in conditions, so
    that columns need none there.
    """
    kind = syntax.kind(tree)
    match kind:
        case "BinaryOp" if tree[kind]["op"] in COMPARISONS:
            yield from _computed(tree[kind]["left"], tree[kind]["right"])
        case "IsDistinctFrom" | "IsNotDistinctFrom":
            yield from _computed(*tree[kind])
        case "Between":
            yield from _computed(*(tree[kind][part] for part in ("expr", "low", "high")))
        case "InList" | "InSubquery":
            yield from _computed(tree[kind]["expr"])
        case "AnyOp" | "AllOp":
            yield from _computed(tree[kind]["left"])
        case "Case" if (operand := tree[kind]["operand"]) is not None:
            for value in (operand, *(each["condition"] for each in tree[kind]["conditions"])):
                if not _is_constant(value):
                    yield value, ONE_FORM
        case "Function":
            yield from _called(tree)
        case _:
            return


def _called(call: Tree) -> Iterator[tuple[Tree, str]]:
    name, arguments = syntax.function_name(call), syntax.arguments(call)
    if name == "nullif":
        yield from ((each, ONE_FORM) for each in arguments if not _is_constant(each))
    elif name in _OF_SEVERAL or (name in _EXTREMES and not syntax.is_windowed(call)):
        yield from _computed(*arguments)
    elif name in scopes.AGGREGATES and arguments:
        if syntax.is_distinct(call):
            yield arguments[0], ONE_FORM
        for clause in call["Function"]["args"]["List"]["clauses"]:
            for key in clause.get("OrderBy", ()) if isinstance(clause, dict) else ():
                yield key["expr"], ONE_FORM


def _computed(*values: Tree) -> Iterator[tuple[Tree, str]]:
    """Yield the values that a computation makes."""
    for each in values:
        if syntax.kind(syntax.unnested(each)) not in _PLAIN and not _is_constant(each):
            yield each, ONE_NAN


def _is_constant(value: Tree) -> bool:
    inner = syntax.unnested(value)
    if syntax.kind(inner) == "UnaryOp":
        inner = syntax.unnested(inner["UnaryOp"]["expr"])
    return syntax.is_constant(inner)
