"""Mends orders that DataFusion 55 misreads: those of aggregates, and of values it takes for sorted.

It passes the sort keys of aggregates on as more arguments: `count` and `avg` panic, `min` has too
many columns. They are removed where the result does not depend on them. It takes running counts,
minima and maxima for sorted, whatever their frames, their partitions and their first NULLs are,
and the times of sorted timestamps. Then it leaves out a sort that is needed, so such values are
hidden.
"""

import re

import pyarrow as pa

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_EXTREMES = frozenset({"min", "max"})
_NAMES = frozenset(
    {"count", "sum", "avg", "mean", "min", "max", "bit_and", "bit_or", "bit_xor", "bool_and",
     "bool_or", "stddev", "stddev_pop", "stddev_samp", "var", "var_pop", "var_samp", "var_sample",
     "var_population", "covar", "covar_pop", "covar_samp", "corr", "median", "approx_distinct",
     "approx_median"}
)  # fmt: skip
_CALL = re.compile(
    rf"\b(?:{'|'.join(sorted(_NAMES))}|regr_\w+)\s*\((?:[^()]|\([^()]*\))*\border\s+by\b"
)


def mend_sorted(scope: SelectScope, types: Types) -> bool:
    """Hide the order of such values; return whether there were any."""
    trees = [each for each in scope.expressions() if _may_seem_sorted(each)]
    sums = [each for each in trees if syntax.function_name(each) == "sum"]
    signed = {
        id(each)
        for each, type_ in zip(sums, types.types_of(scope, sums), strict=True)
        if type_ != pa.uint64()
    }
    hidden = [each for each in trees if id(each) not in signed]
    for each in hidden:
        inner = dict(each)
        # Other remedies look for it.
        scope.add(inner, scope.types.get(id(each)))
        syntax.replace(each, syntax.filled(syntax.OPAQUE, a=inner))
    return bool(hidden)


def _may_seem_sorted(tree: Tree) -> bool:
    if syntax.kind(tree) == "Cast":
        cast = tree["Cast"]
        return syntax.kind(cast["data_type"]) == "Time" and not syntax.is_constant(cast["expr"])
    if syntax.kind(tree) != "Function" or not tree["Function"]["over"]:
        return False
    window = tree["Function"]["over"].get("WindowSpec")
    if window is None or not (window["order_by"] or window["window_frame"]):
        return False
    name = syntax.function_name(tree)
    # A count is sorted from an unbounded beginning on.
    return name in _EXTREMES or name == "sum" or (name == "count" and bool(window["window_frame"]))


def may_order_aggregates(words: str) -> bool:
    """Return whether a statement in lower case may have such an aggregate."""
    return "order" in words and _CALL.search(words) is not None


def mend_aggregates(scope: SelectScope) -> bool:
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
