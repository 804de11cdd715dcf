"""Mends round() of decimals and negated bits, which DataFusion 55 computes wrongly.

The places of round() are cast while the statement is planned, and are a constant only after that.
Then `round(d, 1)` has other digits than the keys of joins and the branches of CASE that were made
equal to it, whose digits are compared without their scale. A minus before bits is taken for a
bitwise NOT: the engine writes `-(a | b)` as `-a & -b`, and `-(a & b)` as `-a | -b`.
"""

import pyarrow as pa

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_MOST_DIGITS, _MOST_WIDE_DIGITS = 38, 76
_BITWISE = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor"})


def mend_rounding(scope: SelectScope, types: Types) -> bool:
    """Cast rounded decimals to the type that they will have; return whether there were any."""
    calls = [each for each in scope.expressions() if _rounds_to_places(each)]
    values = [syntax.arguments(each)[0] for each in calls]
    known = list(zip(calls, types.types_of(scope, values), strict=True))
    decimals = [(each, type_) for each, type_ in known if type_ and pa.types.is_decimal(type_)]
    for call, type_ in decimals:
        inner = dict(call)
        rounded = _rounded_type(type_, _places(syntax.arguments(call)[1]))
        # Other remedies look for it.
        scope.add(inner, rounded)
        text = f"CAST(__a AS DECIMAL({rounded.precision}, {rounded.scale}))"
        syntax.replace(call, syntax.filled(text, a=inner))
    return bool(decimals)


def _rounds_to_places(tree: Tree) -> bool:
    return syntax.function_name(tree) == "round" and len(syntax.arguments(tree)) == 2


def _places(argument: Tree) -> int | None:
    """Return the places if they are a constant, which plans of clients have as a cast text."""
    inner = syntax.unnested(argument)
    while syntax.kind(inner) == "Cast":
        inner = syntax.unnested(inner["Cast"]["expr"])
    text = syntax.body(inner)["value"] if syntax.kind(inner) == "Value" else None
    digits = text.get("SingleQuotedString", "") if isinstance(text, dict) else ""
    return syntax.number(inner) if syntax.whole(digits) is None else syntax.whole(digits)


def _rounded_type(type_: pa.DataType, places: int | None) -> pa.DataType:
    """Return the type that the engine gives to rounded values in the end."""
    digits, scale = type_.precision, type_.scale
    left = scale if places is None else min(max(places, 0), scale)
    if pa.types.is_decimal128(type_):
        return pa.decimal128(min(_MOST_DIGITS, digits - scale + left + 1), left)
    return pa.decimal256(min(_MOST_WIDE_DIGITS, digits - scale + left + 1), left)


def may_negate_bits(words: str) -> bool:
    """Return whether the text of a statement, without its comments, may negate bits."""
    return "-" in words and any(sign in words for sign in "&|^")


def mend_bits(scope: SelectScope) -> bool:
    """Write negations of bitwise operations as subtractions; return whether there were any."""
    found = [each for each in scope.expressions() if _negates_bits(each)]
    for each in found:
        syntax.replace(each, syntax.filled("0 - __a", a=each["UnaryOp"]["expr"]))
    return bool(found)


def _negates_bits(tree: Tree) -> bool:
    if syntax.kind(tree) != "UnaryOp" or tree["UnaryOp"]["op"] != "Minus":
        return False
    inner = syntax.unnested(tree["UnaryOp"]["expr"])
    # The engine drops two signs after this remedy.
    while syntax.kind(inner) == "UnaryOp" and inner["UnaryOp"]["op"] in ("Minus", "Plus"):
        inner = syntax.unnested(inner["UnaryOp"]["expr"])
    return syntax.kind(inner) == "BinaryOp" and inner["BinaryOp"]["op"] in _BITWISE
