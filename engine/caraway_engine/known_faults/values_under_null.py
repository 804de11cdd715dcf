"""Empties the structs, lists and maps that CASE and `nullif` make NULL.

DataFusion 55 only clears a bit for them. What lies below stays, and `get_field`, `map_extract` and
`array_append` read it. Another form of CASE copies the values that it keeps.
"""

import re
from collections.abc import Iterator

import pyarrow as pa

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_MAKES_NULLS = re.compile(r"\bcase\b|\bnullif\b")
_CALLS = re.compile(
    r"\[|\bget_field\b|\bunnest\b|\bmap_extract\b|\belement_at\b|_append\b|_prepend\b|_push_"
)
_CASE = "CASE WHEN (__condition) IS NOT TRUE THEN {other} ELSE __value END"
_NULLIF = "CASE WHEN __a = __b THEN NULL ELSE __a END"
_ONE_VALUE = ("BinaryOp", "UnaryOp", "Value", "TypedString", "Interval")


def may_apply(words: str, *, is_view: bool) -> bool:
    """Return whether a statement in lower case may make such values NULL and read them.

    Other statements may read those of a view.
    """
    return _MAKES_NULLS.search(words) is not None and (
        is_view or "." in words or _CALLS.search(words) is not None
    )


def reads(words: str, statement: Tree) -> bool:
    """Return whether a statement may read such values; a dot may be before a field."""
    if _CALLS.search(words):
        return True
    relations, qualifiers = set(), set()
    for each in syntax.everything(statement):
        if "CompoundIdentifier" in each:
            *relation, qualifier, _ = map(syntax.spelled, each["CompoundIdentifier"])
            if relation:
                return True
            qualifiers.add(qualifier)
        elif isinstance(alias := each.get("alias"), dict) and "name" in alias:
            relations.add(syntax.spelled(alias["name"]))
        elif "json_path" in each and "Identifier" in each["name"][-1]:
            relations.add(syntax.spelled(each["name"][-1]["Identifier"]))
    return not qualifiers <= relations


def candidates(scope: SelectScope) -> list[Tree]:
    """Return the values that may become NULL, whose types decide whether they are emptied."""
    return [value for each in scope.expressions() for value in _emptied(each)]


def mend(scope: SelectScope, types: Types) -> bool:
    """Empty structs, lists and maps that become NULL; return whether there were any."""
    found = [(each, value) for each in scope.expressions() for value in _emptied(each)]
    known = types.types_of(scope, [value for _, value in found])
    nested = [each for (each, _), type_ in zip(found, known, strict=True) if _is_nested(type_)]
    for each in nested:
        syntax.replace(each, _form(each))
    return bool(nested)


def _is_nested(type_: pa.DataType | None) -> bool:
    return type_ is not None and pa.types.is_nested(type_)


def _emptied(tree: Tree) -> Iterator[Tree]:
    """Yield the value of an expression that is NULL in some rows without a copy."""
    match syntax.kind(tree):
        case "Case":
            case = tree["Case"]
            is_single = case["operand"] is None and len(case["conditions"]) == 1
            if is_single and _may_be_null(case["else_result"]):
                yield from _nestable(case["conditions"][0]["result"])
        case "Function" if syntax.function_name(tree) == "nullif":
            given = syntax.arguments(tree)
            if (
                len(given) == 2
                and not scopes.is_volatile(given[0])
                and all(map(list, map(_nestable, given)))
            ):
                yield given[0]


def _may_be_null(other: Tree | None) -> bool:
    """Return whether the other value of a CASE may be NULL before any row is read."""
    if other is None:
        return True
    return not scopes.has_subquery(other) and next(syntax.columns(other), None) is None


def _nestable(value: Tree) -> Iterator[Tree]:
    if syntax.kind(syntax.unnested(value)) not in _ONE_VALUE:
        yield value


def _form(tree: Tree) -> Tree:
    if syntax.kind(tree) == "Function":
        a, b = syntax.arguments(tree)
        return {"Nested": syntax.filled(_NULLIF, a=a, b=b)}
    case = tree["Case"]
    (when,) = case["conditions"]
    other = case["else_result"]
    form = _CASE.format(other="NULL" if other is None else "__other")
    places = {} if other is None else {"other": other}
    return {
        "Nested": syntax.filled(form, condition=when["condition"], value=when["result"], **places)
    }
