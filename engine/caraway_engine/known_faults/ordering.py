"""Rewrites repeated sorts, because DataFusion 55 sorts once, below an OFFSET, and loses rows.

It does so for keys that are sorted already, and for those that are constant, such as
`count(*) OVER ()`.
"""

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.syntax import Tree


def mend(statement: Tree) -> bool:
    """Hide from the optimizer that the result of an OFFSET is sorted by the same key again."""
    is_changed = False
    for query in syntax.everything(statement):
        if syntax.is_query(query) and query["order_by"] and _has_skipped(query):
            for key in query["order_by"]["kind"].get("Expressions", ()):
                if syntax.number(key["expr"]) is None:
                    new = syntax.filled(syntax.UNKNOWN, a=dict(key["expr"]))
                    syntax.replace(key["expr"], new)
                    is_changed = True
    return is_changed


def _has_skipped(query: Tree) -> bool:
    return any(
        syntax.is_query(each) and each["order_by"] and skips(each)
        for each in syntax.everything([query["body"], query["with"]])
    )


def skips(query: Tree) -> bool:
    """Return whether a query skips its first rows."""
    limit = query["limit_clause"]
    return bool(limit) and bool(syntax.body(limit).get("offset", True))
