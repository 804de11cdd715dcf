"""Keeps casts of one column apart, which DataFusion 55 calls by the name of the column.

For the engine, `sum(i)` and `sum(CAST(i AS BIGINT))` are two columns of one name, which is an
error. Each cast gets a form of its own, and the statement is planned again.
"""

from collections.abc import Iterator

from caraway_engine.errors import engine_messages
from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_COMPUTED = ("projection", "group_by", "having", "qualify", "named_window")


def is_error(exc: BaseException) -> bool:
    """Return whether the engine may have failed because two casts have one name."""
    messages = (engine_messages.SAME_NAMES, engine_messages.DUPLICATED)
    return any(each.find(exc) is not None for each in messages)


def apart(sql: str) -> str | None:
    """Write the casts of a statement in forms with names of their own; None if it has none."""
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    forms: dict[str, int] = {}
    changed = [_keep_apart(scope, forms) for each in statements for scope in scopes.scopes(each)]
    return ";".join(map(syntax.restored, statements)) if any(changed) else None


def _keep_apart(scope: SelectScope, forms: dict[str, int]) -> bool:
    casts = list(_outermost(_computed(scope)))
    named = [
        (item, syntax.text(item["UnnamedExpr"]))
        for item in scope.select["projection"]
        if any(_outermost(item.get("UnnamedExpr")))
    ]
    for each in casts:
        new: Tree = dict(each)
        for _ in range(forms.setdefault(syntax.text(each), len(forms) + 1)):
            new = syntax.filled(syntax.OPAQUE, a=new)
        syntax.replace(each, new)
    for item, name in named:
        syntax.replace(item, scopes.named(item["UnnamedExpr"], name))
    return bool(casts)


def _outermost(tree: Tree) -> Iterator[Tree]:
    """Yield the casts of columns that are in no other one."""
    inner: set[int] = set()
    for each in syntax.inside(tree):
        if id(each) not in inner and _is_of_column(each):
            yield each
            inner.update(map(id, syntax.inside(each)))


def _computed(scope: SelectScope) -> list[Tree]:
    """Return the parts of a SELECT whose values are columns of a plan."""
    parts = [scope.select[key] for key in _COMPUTED]
    return [*parts, *scope.sort_keys()]


def _is_of_column(tree: Tree) -> bool:
    return syntax.kind(tree) == "Cast" and any(syntax.columns(tree["Cast"]["expr"]))
