"""Rewrites statements that the engine cannot plan as they are."""

from collections.abc import Callable

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.syntax import Tree


def rewritten(sql: str, types: Types, change: Callable[[Tree], bool]) -> str | None:
    """Return statements after a change, with the same columns; None if nothing changed."""
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    items = [
        (scope, item, syntax.copied(item))
        for statement in statements
        for scope in scopes.scopes(statement)
        if scope.is_top
        for item in scope.select["projection"]
        if "UnnamedExpr" in item
    ]
    changed = [change(each) for each in statements]
    if not any(changed):
        return None
    for scope, item, before in items:
        if item != before and (name := types.name(scope, before["UnnamedExpr"])) is not None:
            syntax.replace(item, scopes.named(item["UnnamedExpr"], name))
    return ";".join(map(syntax.restored, statements))
