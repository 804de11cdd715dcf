"""Compares timestamps with constants that are finer than they are.

To read less, DataFusion 55 compares a column in its own unit, and cuts the constant off: over
milliseconds, `t < '10:00:00.0001'` becomes `t < '10:00:00'`.
"""

import re
from collections.abc import Iterator

import pyarrow as pa

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_FRACTION = re.compile(r":\d\d\.(?P<digits>\d*[1-9])")
_COMPARED = frozenset({"Eq", "NotEq", "Lt", "LtEq", "Gt", "GtEq"})
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_NAMES = {3: "Millisecond", 6: "Microsecond", 9: "Nanosecond"}
_FORM = "nullif(arrow_cast(__a, '{type}'), NULL)"


def may_apply(words: str) -> bool:
    """Return whether the text of a statement, without its comments, may have such constants."""
    return _FRACTION.search(words) is not None


def mend(scope: SelectScope, types: Types) -> bool:
    """Compare in the unit of the constant; return whether there were any."""
    found = [
        (other, digits)
        for each in scope.expressions()
        for constants, others in [_parted(list(_operands(each)))]
        if (digits := max(map(_digits, constants), default=0))
        for other in others
    ]
    known = types.types_of(scope, [other for other, _ in found])
    coarse = [
        (other, digits, type_)
        for (other, digits), type_ in zip(found, known, strict=True)
        if type_ is not None and pa.types.is_timestamp(type_) and _DIGITS[type_.unit] < digits
    ]
    for other, digits, type_ in coarse:
        name = _NAMES[min(each for each in _NAMES if each >= min(digits, 9))]
        zone = f', Some("{type_.tz}")' if type_.tz else ""
        form = _FORM.format(type=f"Timestamp({name}{zone})")
        syntax.replace(other, syntax.filled(form, a=dict(other)))
    return bool(coarse)


def _operands(tree: Tree) -> Iterator[Tree]:
    match syntax.kind(tree):
        case "BinaryOp" if tree["BinaryOp"]["op"] in _COMPARED:
            yield from (tree["BinaryOp"]["left"], tree["BinaryOp"]["right"])
        case "IsDistinctFrom" | "IsNotDistinctFrom":
            yield from syntax.body(tree)
        case "InList":
            yield from (tree["InList"]["expr"], *tree["InList"]["list"])
        case "Between":
            yield from (tree["Between"][key] for key in ("expr", "low", "high"))


def _parted(operands: list[Tree]) -> tuple[list[Tree], list[Tree]]:
    """Return the constants with fractions of seconds, and the operands that are no constants."""
    constants = [each for each in operands if _digits(each)]
    others = [each for each in operands if not syntax.is_constant(each) and not _text(each)]
    return constants, others


def _digits(operand: Tree) -> int:
    """Return the number of digits of the fraction of a second; 0 if there is none."""
    found = _FRACTION.search(_text(operand))
    return len(found["digits"]) if found else 0


def _text(operand: Tree) -> str:
    inner = syntax.unnested(operand)
    while syntax.kind(inner) == "Cast":
        inner = syntax.unnested(inner["Cast"]["expr"])
    value = inner["TypedString"]["value"] if "TypedString" in inner else inner.get("Value")
    given = value["value"] if value else None
    return str(given.get("SingleQuotedString", "")) if isinstance(given, dict) else ""
