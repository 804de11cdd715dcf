"""Rows that are sorted again: DataFusion 55 sorts once, below an OFFSET, and loses rows."""

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.syntax import Tree

# The same values; the engine does not see that it is the same order.
_ANEW = "CASE WHEN __a IS NULL THEN NULL ELSE __a END"


def mend(statement: Tree) -> bool:
    """Hide from the optimizer that rows are sorted as those are that OFFSET skips some of."""
    is_changed = False
    for query in syntax.everything(statement):
        if syntax.is_query(query) and query["order_by"] and _has_skipped(query):
            for key in query["order_by"]["kind"].get("Expressions", ()):
                if syntax.number(key["expr"]) is None:
                    new = syntax.filled(_ANEW, a=dict(key["expr"]))
                    syntax.replace(key["expr"], new)
                    is_changed = True
    return is_changed


def _has_skipped(query: Tree) -> bool:
    return any(
        syntax.is_query(each) and each["order_by"] and skips(each)
        for each in syntax.everything([query["body"], query["with"]])
    )


def skips(query: Tree) -> bool:
    """Tell if a query leaves out its first rows."""
    limit = query["limit_clause"]
    return bool(limit) and bool(syntax.body(limit).get("offset", True))
