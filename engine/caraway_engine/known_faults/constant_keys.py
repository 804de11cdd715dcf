"""Hides from DataFusion 55 that a key of grouping sets is a constant.

In the totals of `GROUP BY CUBE (v, coalesce(2, k))`, the second key is NULL. For the engine it
stays the constant 2, so it does not repartition or sort by it, and windows above are wrong. Keys
that are literals, as in `ROLLUP (v, 'total')`, are such constants, too.
"""

from collections.abc import Iterator, Mapping, Sequence

from caraway_engine.known_faults import columns, scopes, syntax
from caraway_engine.known_faults.constants import AssumedConstants
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_WITNESSED = "CASE WHEN nullif(__witness, NULL) IS NULL THEN __key ELSE __key END"
_BY_CHANCE = "CASE WHEN random() < 0 THEN __key ELSE __key END"
_OF_ROWS = scopes.AGGREGATES - {"grouping"}
_CLAUSES = ("projection", "group_by", "having", "qualify", "distinct", "named_window")


def mend(scope: SelectScope, types: Types, believed: AssumedConstants) -> bool:
    """Make keys that are no columns depend on one; return whether there were any."""
    sets = scopes.grouping_sets(scope)
    if not believed.computes_keys or not sets:
        return False
    shown = types.columns(scope, scope.select["from"]) or []
    aliased = scopes.aliases(scope.select["projection"])
    keys = {_unqualified(each): syntax.kind(each) for each in _keys(sets, aliased, shown)}
    witness = _witness(sets, believed, shown, set(aliased))
    parts = [scope.select[key] for key in _CLAUSES]
    if scope.is_alone():
        parts.append(scope.query["order_by"])
    found = list(_equal(parts, keys))
    for each in found:
        form = syntax.filled(_BY_CHANCE, key=dict(each))
        if witness is not None:
            form = syntax.filled(_WITNESSED, witness=witness, key=dict(each))
        syntax.replace(each, form)
    return bool(found)


def _keys(sets: list[Tree], aliased: Mapping[str, Tree], shown: Sequence[str]) -> Iterator[Tree]:
    """Yield the keys of grouping sets that are no columns, also those that an alias names."""
    waiting = [syntax.body(each) for each in sets]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list | tuple):
            waiting += each
        elif syntax.kind(each) == "Tuple":
            waiting += each["Tuple"]
        elif syntax.kind(each) == "Identifier":
            name = columns.spelling(each)[-1]
            if name in aliased and name not in shown:
                waiting.append(aliased[name])
        elif syntax.kind(each) != "CompoundIdentifier":
            yield each


def _witness(
    sets: list[Tree], believed: AssumedConstants, shown: Sequence[str], aliased: set[str]
) -> Tree:
    """Return a column that the engine does not take for a constant, or None."""
    assumed = believed.totalled | believed.padded
    for each in columns.named(sets):
        name = columns.spelling(each)[-1]
        if name not in assumed and (name in shown or name not in aliased):
            return each
    alone = [name for name in shown if shown.count(name) == 1 and name not in assumed]
    return {"Identifier": syntax.identifier(alone[0])} if alone else None


def _equal(parts: list[Tree], keys: Mapping[str, str]) -> Iterator[Tree]:
    """Yield the expressions that equal a key and are in no other one, nor in an aggregate."""
    waiting: list[Tree] = [*reversed(parts)]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list | tuple):
            waiting += reversed(each)
        elif isinstance(each, dict) and not syntax.is_query(each):
            kind = syntax.kind(each)
            if kind in keys.values() and keys.get(_unqualified(each)) == kind:
                yield each
            elif syntax.function_name(each) in _OF_ROWS:
                waiting.append(each["Function"]["over"])
            else:
                waiting += [part for key, part in reversed(each.items()) if key != "span"]


def _unqualified(expression: Tree) -> str:
    """Return the text of an expression without the tables of its columns."""
    copy = syntax.copied(expression)
    for each in list(syntax.columns(copy)):
        name = columns.spelling(each)[-1]
        syntax.replace(each, {"Identifier": syntax.identifier(name)})
    return syntax.text(copy).lower()
