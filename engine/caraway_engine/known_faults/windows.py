"""Inlines named windows, because DataFusion 55 loses the name inside another expression.

`1 + sum(x) OVER (w ROWS 1 PRECEDING)` would otherwise be computed over unordered rows. Each
definition is written where it is used, so that the other remedies see it, too.
"""

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree


def inline(scope: SelectScope) -> bool:
    """Inline named windows where they are used; return whether there were any."""
    if not scope.select["named_window"]:
        return False
    named = {syntax.spelled(name): window for name, window in scope.select["named_window"]}
    parts = [scope.select]
    if scope.is_alone():
        parts.append(scope.query["order_by"])
    for each in syntax.inside(parts):
        if "over" in each and "within_group" in each and each["over"]:
            each["over"] = {"WindowSpec": _specified(each["over"], named, len(named))}
    scope.select["named_window"] = []
    return True


def _specified(over: Tree, named: dict[str, Tree], depth: int) -> Tree:
    """Return the complete definition of a window.

    Raises:
        KeyError: it names an unknown window; the engine reports that better.
    """
    if "NamedWindow" in over:
        return _base(over["NamedWindow"], named, depth)
    own: Tree = over["WindowSpec"]
    if own["window_name"] is None:
        return own
    base = _base(own["window_name"], named, depth)
    parts = ("partition_by", "order_by", "window_frame")
    return {"window_name": None, **{part: own[part] or base[part] for part in parts}}


def _base(name: Tree, named: dict[str, Tree], depth: int) -> Tree:
    if depth == 0:
        raise KeyError(syntax.spelled(name))
    return syntax.copied(_specified(named[syntax.spelled(name)], named, depth - 1))
