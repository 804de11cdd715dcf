"""Lets windows by random values read a column, without which DataFusion 55 fails.

It reads no columns of a table if a SELECT names none, and cannot sort rows without columns.
"""

from collections import Counter

from caraway_engine.known_faults import scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

# Only one of the two is computed for a row.
_FORM = "CASE WHEN nullif(__column, NULL) IS NULL THEN __key ELSE __key END"


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may have such windows."""
    return "over" in words and any(name in words for name in scopes.VOLATILE)


def mend(scope: SelectScope, types: Types) -> bool:
    """Read a column for windows by random values alone; return whether there were any."""
    found = [
        spec["order_by"][0]["expr"]
        for each in scope.expressions()
        if (spec := each.get("WindowSpec")) is not None and _is_blind(spec)
    ]
    column = _column(scope, types) if found and not _is_grouped(scope) else None
    if column is None:
        return False
    for each in found:
        key = dict(each)
        form = syntax.filled(_FORM, column=column, key=key)
        syntax.replace(each, {"Nested": form})
    return True


def _is_blind(spec: Tree) -> bool:
    """Return whether a window is sorted by random values, and by no column."""
    keys = [*spec["partition_by"], *spec["order_by"]]
    return (
        bool(spec["order_by"])
        and any(map(scopes.is_volatile, keys))
        and not any(map(scopes.has_subquery, keys))
        and next(syntax.columns(keys), None) is None
    )


def _is_grouped(scope: SelectScope) -> bool:
    parts = [scope.select[key] for key in ("projection", "having", "qualify")]
    return scopes.is_grouped(scope) or any(map(scopes.has_aggregate, parts))


def _column(scope: SelectScope, types: Types) -> Tree | None:
    """Return a column of FROM whose name no other has."""
    counted = Counter(types.columns(scope, scope.select["from"]) or ())
    name = next((name for name, count in counted.items() if count == 1), None)
    return None if name is None else {"Identifier": syntax.identifier(name)}
