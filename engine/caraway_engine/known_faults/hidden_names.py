"""Names columns apart where nobody sees their names, and DataFusion 55 wants them to differ.

These are the second sides of set operations, the subqueries of EXISTS, and queries whose columns
are named by a list, as in `WITH q(x, y) AS (SELECT i, i FROM t)`.
"""

from collections.abc import Iterator

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.syntax import Tree

_NAME = "__column_{}"


def apart(sql: str) -> str | None:
    """Give names to the hidden columns of a statement; None if it has none."""
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    selects = [each for statement in statements for each in _hidden(statement)]
    changed = [_name_columns(each) for each in selects]
    return ";".join(map(syntax.restored, statements)) if any(changed) else None


def _hidden(statement: Tree) -> Iterator[Tree]:
    """Yield the SELECTs whose columns have no name outside."""
    for each in syntax.everything(statement):
        if syntax.kind(each) == "SetOperation":
            yield from _selects(each["SetOperation"]["right"])
        elif syntax.kind(each) == "Exists":
            yield from _selects(each["Exists"]["subquery"]["body"])
        elif syntax.kind(each) == "Derived":
            yield from _listed(each["Derived"]["alias"], each["Derived"]["subquery"])
        elif "closing_paren_token" in each:
            yield from _listed(each["alias"], each["query"])


def _listed(alias: Tree, query: Tree) -> Iterator[Tree]:
    if alias and alias["columns"]:
        yield from _selects(query["body"])


def _selects(body: Tree) -> Iterator[Tree]:
    """Yield the SELECTs of all sides of a body."""
    match syntax.kind(body):
        case "Select":
            yield body["Select"]
        case "Query":
            yield from _selects(body["Query"]["body"])
        case "SetOperation":
            yield from _selects(body["SetOperation"]["left"])
            yield from _selects(body["SetOperation"]["right"])


def _name_columns(select: Tree) -> bool:
    # The first one keeps its name, by which ORDER BY may sort.
    later = [
        (place, item)
        for place, item in enumerate(select["projection"])
        if place and "UnnamedExpr" in item
    ]
    for place, item in later:
        syntax.replace(item, scopes.named(item["UnnamedExpr"], _NAME.format(place)))
    return bool(later)
