"""Puts parentheses around IS DISTINCT FROM, whose right side DataFusion 55 reads too far.

For the engine's parser, `a IS DISTINCT FROM b AND c` compares `a` with `b AND c`. In SQL, AND and
OR bind less than IS.
"""

import re
from collections.abc import Iterator

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.syntax import Tree

_MAY_APPLY = re.compile(r"\bdistinct\s+from\b", re.IGNORECASE)
_CONNECTED = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)
_KINDS = ("IsDistinctFrom", "IsNotDistinctFrom")
_LOOSE = ("Or", "And")
_NOT = "Not"
_Part = Tree | str
"""An operand, or the word of an operator."""


def regrouped(sql: str) -> str | None:
    """Write a statement with the parentheses that it needs; None if it needs none."""
    found = _MAY_APPLY.search(sql)
    if found is None or not _CONNECTED.search(sql, found.end()):
        return None
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    changed = [_regroup(each) for each in statements]
    return ";".join(map(syntax.restored, statements)) if any(changed) else None


def _regroup(statement: Tree) -> bool:
    is_changed = False
    inner: set[int] = set()
    # Outer expressions come first, and have all parts that must move.
    for each in list(syntax.everything(statement)):
        if id(each) in inner or not _is_boolean(each):
            continue
        chain = list(_chain(each))
        inner.update(map(id, chain))
        if any(map(_reaches_too_far, chain)):
            parts = list(_parts(each))
            syntax.replace(each, {"Nested": _grouped(parts, 0)})
            is_changed = True
    return is_changed


def _is_boolean(tree: Tree) -> bool:
    match syntax.kind(tree):
        case "BinaryOp":
            return tree["BinaryOp"]["op"] in _LOOSE
        case "UnaryOp":
            return bool(tree["UnaryOp"]["op"] == _NOT)
    return syntax.kind(tree) in _KINDS


def _sides(tree: Tree) -> list[Tree]:
    if syntax.kind(tree) == "BinaryOp":
        return [tree["BinaryOp"]["left"], tree["BinaryOp"]["right"]]
    if syntax.kind(tree) == "UnaryOp":
        return [tree["UnaryOp"]["expr"]]
    return list(syntax.body(tree))


def _chain(tree: Tree) -> Iterator[Tree]:
    """Yield the expressions that are connected without parentheses."""
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        if _is_boolean(each):
            yield each
            waiting += _sides(each)


def _reaches_too_far(tree: Tree) -> bool:
    if syntax.kind(tree) not in _KINDS:
        return False
    right = syntax.body(tree)[1]
    return any(syntax.kind(each) == "BinaryOp" for each in _chain(right))


def _parts(tree: Tree) -> Iterator[_Part]:
    """Yield operands and operators in the order of the text."""
    match syntax.kind(tree) if _is_boolean(tree) else "":
        case "BinaryOp":
            left, right = _sides(tree)
            yield from _parts(left)
            yield tree["BinaryOp"]["op"]
            yield from _parts(right)
        case "UnaryOp":
            yield _NOT
            yield from _parts(_sides(tree)[0])
        case "":
            # A copy, because the tree may be replaced by what it becomes a part of.
            yield dict(tree)
        case kind:
            left, right = syntax.body(tree)
            parts = list(_parts(right))
            end = next(place for place, part in enumerate(parts) if part != _NOT) + 1
            yield {"Nested": {kind: [left, _grouped(parts[:end], 0)]}}
            yield from parts[end:]


def _grouped(parts: list[_Part], level: int) -> Tree:
    """Make one expression of operands and operators: OR binds less than AND, and that than NOT."""
    if level == len(_LOOSE):
        if parts[0] != _NOT:
            return parts[0]
        return {"UnaryOp": {"op": _NOT, "expr": _grouped(parts[1:], level)}}
    places = [place for place, part in enumerate(parts) if part == _LOOSE[level]]
    tree: Tree = None
    for start, end in zip([-1, *places], [*places, len(parts)], strict=True):
        term = _grouped(parts[start + 1 : end], level + 1)
        tree = term if tree is None else _joined(tree, _LOOSE[level], term)
    return tree


def _joined(left: Tree, operator: str, right: Tree) -> Tree:
    return {"BinaryOp": {"left": left, "op": operator, "right": right}}
