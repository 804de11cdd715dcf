"""Keeps the NULL of values that occur twice under XOR, because DataFusion 55 cancels them.

`a ^ b ^ a` becomes `b`, also where a is NULL.
"""

import json
from collections.abc import Iterator

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_OPERATOR = "BitwiseXor"


def may_apply(words: str) -> bool:
    """Return whether a statement may have such values."""
    return "^" in words


def mend(scope: SelectScope) -> bool:
    """Make XOR of values that occur twice NULL where they are; return whether there was any."""
    found = False
    inner = {id(side) for each in scope.expressions() for side in _sides(each)}
    for each in list(scope.expressions()):
        if not _sides(each) or id(each) in inner:
            continue
        repeated = _repeated(_operands(each))
        if repeated:
            test = " OR ".join(f"__v{number} IS NULL" for number in range(len(repeated)))
            places = {f"v{number}": value for number, value in enumerate(repeated)}
            old = syntax.copied(each)
            form = syntax.filled(f"CASE WHEN {test} THEN NULL ELSE __x END", x=old, **places)
            syntax.replace(each, {"Nested": form})
            found = True
    return found


def _sides(tree: Tree) -> list[Tree]:
    """Return both sides of XOR without parentheses; empty for other expressions."""
    if syntax.kind(tree) != "BinaryOp" or tree["BinaryOp"]["op"] != _OPERATOR:
        return []
    return [syntax.unnested(tree["BinaryOp"][side]) for side in ("left", "right")]


def _operands(tree: Tree) -> Iterator[Tree]:
    for side in _sides(tree):
        if _sides(side):
            yield from _operands(side)
        else:
            yield side


def _repeated(operands: Iterator[Tree]) -> list[Tree]:
    """Return the operands that occur twice; the engine never cancels random ones."""
    seen: set[str] = set()
    repeated: dict[str, Tree] = {}
    for each in operands:
        key = json.dumps(_spelled(each), sort_keys=True)
        if key in seen and not syntax.is_constant(each) and not scopes.is_costly(each):
            repeated[key] = each
        seen.add(key)
    return list(repeated.values())


def _spelled(tree: Tree) -> Tree:
    """Return a tree without positions, in which names that are equal are spelled alike."""
    if isinstance(tree, dict):
        if "quote_style" in tree:
            return syntax.spelled(tree)
        if syntax.kind(tree) == "CompoundIdentifier":
            # Another spelling of the same column: t.a and a.
            return {"Identifier": syntax.spelled(tree["CompoundIdentifier"][-1])}
        return {key: _spelled(each) for key, each in tree.items() if key != "span"}
    return [_spelled(each) for each in tree] if isinstance(tree, list | tuple) else tree
