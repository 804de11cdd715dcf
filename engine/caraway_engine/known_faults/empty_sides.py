"""Gives the sides of a UNION one set of names where the first one is always empty.

DataFusion 55 leaves such a side out, and looks for its names in the other one. `SELECT i AS m FROM
a WHERE false UNION ALL VALUES (1)` is an error.
"""

import re

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.syntax import Tree

_UNION = re.compile(r"\bunion\b", re.IGNORECASE)
_EMPTY = re.compile(
    r"\b(?:where|and|on|having|not)\b[\s(]*(?:false|true|null|'|\d)|\blimit\s+0\b", re.IGNORECASE
)
_NAMED = "SELECT * FROM ({side}) AS __side({names})"


def named(sql: str, types: Types) -> str | None:
    """Name the columns of the other sides; None if no condition visibly is a constant."""
    if not _UNION.search(sql) or not _EMPTY.search(sql):
        return None
    try:
        statements = syntax.parse(sql)
    except syntax.SyntaxUnknownError:
        return None
    changed = [
        _name(tree["SetOperation"], with_, types)
        for statement in statements
        for tree, with_ in scopes.set_operations(statement)
    ]
    return ";".join(map(syntax.restored, statements)) if any(changed) else None


def _name(operation: Tree, with_: Tree, types: Types) -> bool:
    if operation["op"] != "Union":
        return False
    queries = [syntax.query(operation[side]) for side in ("left", "right")]
    first, other = (types.schema(each, with_) for each in queries)
    if first is None or other is None or first.names == other.names:
        return False
    if len(first) != len(other) or len(set(first.names)) < len(first):
        return False
    names = ", ".join(syntax.text({"Identifier": syntax.identifier(each)}) for each in first.names)
    side = syntax.restored({"Query": queries[1]})
    (made,) = syntax.parse(_NAMED.format(side=side, names=names))
    operation["right"] = made["Query"]["body"]
    return True
