"""Finds joins by lists and structs, whose rows DataFusion 55 filters by the least and greatest key.

It compares NULLs within a key in other ways than the join does, and loses rows, or fails. The
structs of `null_keys` are filtered correctly unless they contain lists or structs.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from datafusion import LogicalPlan, SessionContext
from datafusion.expr import Expr

_DYNAMIC_FILTERS = frozenset({"datafusion.optimizer.enable_join_dynamic_filter_pushdown"})
_NONE = frozenset[str]()


def forbidden(
    context: SessionContext, sides: Sequence[object], join: Any, schema: pa.Schema
) -> frozenset[str]:
    """Return the settings that must be off while a join with these columns becomes physical."""
    nested = {each.name for each in schema if pa.types.is_nested(each.type)}
    for keys in join.on():
        for side, key in zip(sides, keys, strict=True):
            if key.variant_name() == "Column":
                is_nested = key.to_variant().name() in nested
            else:
                is_nested = _is_nested(context, side, key)
            if is_nested:
                return _DYNAMIC_FILTERS
    return _NONE


def _is_nested(context: SessionContext, side: object, key: object) -> bool:
    frame = context.create_dataframe_from_logical_plan(LogicalPlan(side))
    (type_,) = pa.schema(frame.select(Expr(key)).schema()).types
    if not pa.types.is_nested(type_):
        return False
    return not (_is_of_null_keys(key) and not any(pa.types.is_nested(each.type) for each in type_))


def _is_of_null_keys(key: Any) -> bool:
    if key.variant_name() != "ScalarFunction" or key.rex_call_operator() != "struct":
        return False
    return bool(key.rex_call_operands()[0].variant_name() == "IsNull")
