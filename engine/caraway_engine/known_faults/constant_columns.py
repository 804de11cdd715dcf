"""Gives comparisons with constants one form, because DataFusion 55 takes two forms for two values.

It finds no rows for `s = 'a' AND 'a' = s`. So constants are written on the right. Over
`SELECT 'a' AS x, s FROM t`, it puts a constant for `x` in `x = s AND s = 'a'`, and compares the two
values of `s` before they have one type. So one side is hidden from it.
"""

import re

from caraway_engine.known_faults import joining, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_COMPARES = re.compile(r"[\w\"]\s*[=<>]=?\s*[a-z_\"]")
_TURNED = {"Eq": "Eq", "Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
_CONSTANT_FIRST = re.compile(r"(?:'|\d|\))\s*[=<>]=?\s*[a-z_\"]")
_COLUMNS = ("Identifier", "CompoundIdentifier")


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may have such comparisons."""
    where = words.find("where")
    compares = where >= 0 and _COMPARES.search(words, where) is not None
    return compares or _CONSTANT_FIRST.search(words) is not None


def turn(scope: SelectScope) -> bool:
    """Write constants on the right of comparisons; return whether any was on the left."""
    conditions = [each for join in scope.joins() for each in scopes.on(join)]
    conditions += [scope.select[key] for key in ("selection", "having", "qualify")]
    found = [each["BinaryOp"] for each in syntax.inside(conditions) if _begins_constant(each)]
    for each in found:
        each["left"], each["right"] = each["right"], each["left"]
        each["op"] = _TURNED[each["op"]]
    return bool(found)


def _begins_constant(tree: Tree) -> bool:
    if syntax.kind(tree) != "BinaryOp" or tree["BinaryOp"]["op"] not in _TURNED:
        return False
    left, right = tree["BinaryOp"]["left"], tree["BinaryOp"]["right"]
    return bool(_owners(right)) and not _owners(left) and not scopes.is_costly(left)


def mend(scope: SelectScope, types: Types) -> bool:
    """Hide columns that are compared with others of their relation; return whether any was."""
    terms = joining.conjuncts(scope.select["selection"])
    columns = [
        column
        for each in terms
        if (column := _compared_column(each)) is not None and _is_of_computed(each, scope, types)
    ]
    for more, column in enumerate(columns, 1):
        # The optimizer makes one column of equal expressions.
        for _ in range(more):
            syntax.replace(column, syntax.filled(syntax.OPAQUE, a=dict(column)))
    return bool(columns)


def _compared_column(tree: Tree) -> Tree | None:
    """Return the column that is compared with an expression of columns, or None."""
    if syntax.kind(tree) != "BinaryOp" or tree["BinaryOp"]["op"] not in _TURNED:
        return None
    sides = [tree["BinaryOp"][side] for side in ("right", "left")]
    if not all(_owners(side) for side in sides):
        return None
    return next((each for each in sides if syntax.kind(syntax.unnested(each)) in _COLUMNS), None)


def _owners(tree: Tree) -> set[str]:
    """Return the relations that the columns of an expression name, with "" for none."""
    parts = [each.get("CompoundIdentifier") for each in syntax.columns(tree)]
    return {syntax.spelled(each[-2]) if each else "" for each in parts}


def _is_of_computed(tree: Tree, scope: SelectScope, types: Types) -> bool:
    """Return whether all columns are of one relation, which is a subquery, a CTE or a view."""
    owners = _owners(tree)
    relations = [
        relation
        for from_ in joining.froms(scope.select["from"])
        for relation in (from_["relation"], *(join["relation"] for join in from_["joins"]))
    ]
    if len(owners) > 1 or ("" in owners and len(relations) > 1):
        return False
    (owner,) = owners
    return any(types.is_computed(each, scope) for each in relations if _named(each, owner))


def _named(relation: Tree, owner: str) -> bool:
    inner = relation.get("Table") or relation.get("Derived")
    if not isinstance(inner, dict):
        return False
    if not owner:
        return True
    if inner["alias"]:
        return syntax.spelled(inner["alias"]["name"]) == owner
    last = inner["name"][-1] if "name" in inner else {}
    return "Identifier" in last and syntax.spelled(last["Identifier"]) == owner
