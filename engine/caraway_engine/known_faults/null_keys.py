"""Writes IS NOT DISTINCT FROM between columns as an equality, which DataFusion 55 keeps apart.

The engine makes keys of the joins from both. It combines inner joins, and then compares all of
their keys, and those from equalities in WHERE, as the last join does: NULL equals NULL nowhere, or
everywhere. Structs compare their fields as IS NOT DISTINCT FROM does, and are never NULL. The
engine also filters the other side of a join by the least and the greatest key, and finds neither
among NULLs. So the first field says what is NULL.
"""

from caraway_engine.known_faults import float_forms, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_SIGNS = {"IsNotDistinctFrom": "=", "IsDistinctFrom": "<>"}


def mend(scope: SelectScope, types: Types) -> bool:
    """Compare columns in conditions by structs; return whether there were any."""
    found = [each for each in syntax.inside(_conditions(scope)) if _compares_columns(each)]
    types.types_of(scope, [side for each in found for side in syntax.body(each)])
    for each in found:
        left, right = syntax.body(each)
        # Behind a semi join, the type of one side is not known.
        known = (scope.types.get(id(side)) for side in (left, right))
        if type_ := next((one for one in known if one in float_forms.SQL_TYPES), None):
            # Fields of structs have no zeros of two signs that are equal.
            for side in (left, right):
                syntax.replace(side, float_forms.filled(float_forms.ONE_FORM, side, type_))
        sign = _SIGNS[syntax.kind(each)]
        text = f"struct(__a IS NULL, __a) {sign} struct(__b IS NULL, __b)"
        new = syntax.filled(text, a=left, b=right)
        syntax.replace(each, {"Nested": new})
    return bool(found)


def _conditions(scope: SelectScope) -> list[Tree]:
    conditions = [each for join in scope.joins() for each in scopes.on(join)]
    return [*conditions, *(scope.select[key] for key in ("selection", "having", "qualify"))]


def _compares_columns(tree: Tree) -> bool:
    return syntax.kind(tree) in _SIGNS and all(
        any(syntax.columns(side)) for side in syntax.body(tree)
    )
