"""Subtracts bits from zero where they are negated, which DataFusion 55 takes for a bitwise NOT.

It writes `-(a | b)` as `-a & -b`, and `-(a & b)` as `-a | -b`.
"""

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_BITWISE = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor"})


def may_apply(words: str) -> bool:
    """Return whether the text of a statement, without its comments, may negate bits."""
    return "-" in words and any(sign in words for sign in "&|^")


def mend(scope: SelectScope) -> bool:
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
