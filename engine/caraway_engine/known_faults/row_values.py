"""Compares rows such as `(a, b) < (1, 2)` column by column, as SQL does.

For DataFusion 55 they are structs: NULL in one is a value, less than all others and equal to
itself, so the comparison is never NULL.
"""

import re
from collections.abc import Sequence

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.syntax import Tree

_MAY_APPLY = re.compile(r"\)\s*(?:[<>=]|!=)[^(]{0,9}\(|\bin\s*\(\s*\(")
_SIGNS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_MOST_COMPARED = 1000


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may compare rows."""
    return _MAY_APPLY.search(words) is not None


def mend(statement: Tree) -> bool:
    """Write comparisons of rows as those of their columns; return whether there were any."""
    changed = [_mend(each) for each in list(syntax.everything(statement))]
    return any(changed)


def _mend(each: Tree) -> bool:
    kind = syntax.kind(each)
    form = None
    if kind not in ("BinaryOp", "InList") or scopes.is_costly(each):
        return False
    if kind == "BinaryOp" and str(each[kind]["op"]) in _SIGNS:
        left, right = (_columns(each[kind][side]) for side in ("left", "right"))
        if left and len(left) == len(right):
            form = _compared(left, _SIGNS[each[kind]["op"]], right)
    elif kind == "InList" and (columns := _columns(each[kind]["expr"])):
        form = _listed(columns, [_columns(row) for row in each[kind]["list"]])
        if form is not None and each[kind]["negated"]:
            form = syntax.filled("NOT __a", a=form)
    if form is None:
        return False
    syntax.replace(each, {"Nested": form})
    return True


def _columns(row: Tree) -> list[Tree]:
    inner = syntax.unnested(row)
    return list(inner["Tuple"]) if syntax.kind(inner) == "Tuple" else []


def _compared(left: Sequence[Tree], sign: str, right: Sequence[Tree]) -> Tree:
    """Return the comparison of two rows; of unequal ones, the first columns that differ decide."""
    a, b, *_ = left[0], right[0]
    if len(left) == 1:
        return syntax.filled(f"__a {sign} __b", a=a, b=b)
    rest = _compared(left[1:], sign, right[1:])
    if sign in ("=", "<>"):
        word = "AND" if sign == "=" else "OR"
        return syntax.filled(f"__a {sign} __b {word} __rest", a=a, b=b, rest=rest)
    form = f"__a {sign[0]} __b OR (__a = __b AND __rest)"
    return syntax.filled(form, a=a, b=b, rest=rest)


def _listed(columns: list[Tree], rows: list[list[Tree]]) -> Tree | None:
    """Return whether a row is one of a list, or None if that would be too long."""
    if any(len(row) != len(columns) for row in rows) or len(columns) * len(rows) > _MOST_COMPARED:
        return None
    found = [_compared(columns, "=", row) for row in rows]
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        odd = found[-1:] if len(found) % 2 else []
        found = [syntax.filled("__a OR __b", a=a, b=b) for a, b in pairs] + odd
    return found[0]
