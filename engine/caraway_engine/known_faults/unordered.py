"""Removes ORDER BY from aggregates that do not depend on it, where DataFusion 55 fails.

It passes the sort keys on as more arguments: `count` and `avg` panic, `min` has too many columns.
"""

import re

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.scopes import SelectScope

_NAMES = frozenset(
    {"count", "sum", "avg", "mean", "min", "max", "bit_and", "bit_or", "bit_xor", "bool_and",
     "bool_or", "stddev", "stddev_pop", "stddev_samp", "var", "var_pop", "var_samp", "var_sample",
     "var_population", "covar", "covar_pop", "covar_samp", "corr", "median", "approx_distinct",
     "approx_median"}
)  # fmt: skip
_CALL = re.compile(
    rf"\b(?:{'|'.join(sorted(_NAMES))}|regr_\w+)\s*\((?:[^()]|\([^()]*\))*\border\s+by\b"
)


def may_apply(words: str) -> bool:
    """Return whether a statement in lower case may have such an aggregate."""
    return "order" in words and _CALL.search(words) is not None


def mend(scope: SelectScope) -> bool:
    """Remove ORDER BY from such aggregates of a SELECT; return whether there were any."""
    is_changed = False
    for each in scope.expressions():
        name = syntax.function_name(each)
        if not (name in _NAMES or name.startswith("regr_")) or syntax.is_windowed(each):
            continue
        given = each["Function"]["args"]
        if syntax.kind(given) != "List":
            continue
        clauses = given["List"]["clauses"]
        kept = [one for one in clauses if not (isinstance(one, dict) and "OrderBy" in one)]
        is_changed |= len(kept) < len(clauses)
        given["List"]["clauses"] = kept
    return is_changed
