"""Hides values that DataFusion 55 takes for sorted although they are not.

It takes running counts, minima and maxima for sorted, whatever their frames, their partitions and
their first NULLs are, and the times of sorted timestamps. Then it leaves out a sort that is needed.
"""

import pyarrow as pa

from caraway_engine.known_faults import syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_EXTREMES = frozenset({"min", "max"})


def mend(scope: SelectScope, types: Types) -> bool:
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
