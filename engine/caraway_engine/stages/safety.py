"""Decides which plans can be distributed; any other plan runs whole.

This is an allow list, because Substrait silently drops some flags. Examples are the NULL awareness
of NOT IN, window frames with a RANGE offset, and IGNORE NULLS. Each entry is covered by the
differential tests.
"""

from typing import Any

from substrait.algebra_pb2 import Expression, Rel
from substrait.plan_pb2 import Plan

from caraway_engine.searching import function_names
from caraway_engine.searching.embedding import NAMES as EMBED_FUNCTIONS
from caraway_engine.stages import joins
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import INPUT_FIELDS, body, join_type, kind, walk

_COMPARISON = (
    "equal", "not_equal", "lt", "lte", "gt", "gte", "is_distinct_from", "is_not_distinct_from",
    "and", "or", "not", "is_null", "is_not_null", "is_true", "is_false", "is_not_true",
    "is_not_false", "is_unknown", "is_not_unknown", "like", "ilike", "between",
)  # fmt: skip
_ARITHMETIC = (
    "add", "subtract", "multiply", "divide", "modulus", "mod", "negate", "abs", "ceil", "floor",
    "round", "trunc", "sqrt", "cbrt", "exp", "ln", "log", "log10", "log2", "power", "pow",
    "signum", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "pi",
    "degrees", "radians", "gcd", "lcm", "factorial", "isnan", "iszero", "nanvl", "greatest",
    "least", "coalesce", "nullif", "nvl", "nvl2", "bitwise_and", "bitwise_or", "bitwise_xor",
    "bitwise_shift_left", "bitwise_shift_right",
)  # fmt: skip
_TEXT = (
    "substr", "substring", "upper", "lower", "trim", "btrim", "ltrim", "rtrim", "lpad", "rpad",
    "length", "char_length", "character_length", "octet_length", "bit_length", "concat",
    "concat_ws", "replace", "reverse", "repeat", "left", "right", "strpos", "position", "instr",
    "starts_with", "ends_with", "contains", "split_part", "initcap", "ascii", "chr", "translate",
    "to_hex", "md5", "sha224", "sha256", "sha384", "sha512", "levenshtein", "substr_index",
    "find_in_set", "overlay", "regexp_like", "regexp_replace", "regexp_count", "regexp_match",
)  # fmt: skip
_TIME = (
    "date_part", "date_trunc", "date_bin", "extract", "to_date", "to_timestamp",
    "to_timestamp_seconds", "to_timestamp_millis", "to_timestamp_micros", "to_timestamp_nanos",
    "from_unixtime", "to_unixtime", "make_date", "to_char", "date_format",
)  # fmt: skip
_AGGREGATES = (
    "sum", "count", "min", "max", "avg", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor",
    "stddev", "stddev_pop", "stddev_samp", "var", "var_pop", "var_samp", "var_sample",
    "var_population", "covar", "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept",
    "regr_count", "regr_r2", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy",
    "median", "approx_distinct",
)  # fmt: skip
_WINDOWS = (
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead",
    "first_value", "last_value", "nth_value",
)  # fmt: skip
_SEARCHING = (
    *function_names.SCALARS, *function_names.AGGREGATES, *EMBED_FUNCTIONS, "make_array",
)  # fmt: skip
FUNCTIONS = frozenset(
    {*_COMPARISON, *_ARITHMETIC, *_TEXT, *_TIME, *_AGGREGATES, *_WINDOWS, *_SEARCHING}
)
RELATIONS = frozenset({*INPUT_FIELDS, "set"})
EXPRESSIONS = frozenset(
    {"literal", "selection", "scalar_function", "window_function", "if_then", "singular_or_list",
     "cast", "subquery"}
)  # fmt: skip
TYPES = frozenset(
    {"bool", "i8", "i16", "i32", "i64", "fp32", "fp64", "string", "binary", "date", "decimal",
     "precision_timestamp", "precision_timestamp_tz", "timestamp", "timestamp_tz", "list",
     "struct"}
)  # fmt: skip
LITERALS = frozenset(
    {"boolean", "i8", "i16", "i32", "i64", "fp32", "fp64", "string", "binary", "date", "decimal",
     "precision_timestamp", "precision_timestamp_tz", "timestamp", "timestamp_tz", "null",
     "interval_day_to_second", "interval_year_to_month", "interval_compound"}
)  # fmt: skip
_SAFE_BOUNDS = ("unbounded", "current_row", None)


def objection(plan: Plan, uncut: str | None, functions: Functions) -> str | None:
    """Return why a plan cannot be distributed, or None; `uncut` is what Substrait would lose."""
    if uncut:
        return f"'{uncut}' runs whole"
    unknown = functions.names - FUNCTIONS
    if unknown:
        return f"function {', '.join(sorted(unknown))} runs whole"
    if len(plan.relations) != 1 or plan.relations[0].WhichOneof("rel_type") != "root":
        return "a plan of this shape runs whole"
    for rel in _walked(plan.relations[0].root.input):
        if reason := _relation(rel, functions):
            return reason
    return None


def _walked(rel: Rel) -> list[Rel]:
    try:
        return list(walk(rel))
    except KeyError:
        return [rel]


def _relation(rel: Rel, functions: Functions) -> str | None:
    if kind(rel) not in RELATIONS:
        return f"relation '{kind(rel)}' runs whole"
    if kind(rel) == "read" and rel.read.WhichOneof("read_type") != "named_table":
        return "rows given in the statement run whole"
    if kind(rel) == "set" and rel.set.op != rel.set.SET_OP_UNION_ALL:
        return "this set operation runs whole"
    if kind(rel) == "join" and join_type(rel) not in joins.KNOWN:
        return f"join type {join_type(rel)} runs whole"
    if kind(rel) == "join" and len(set(joins.equalities(rel, functions))) > 1:
        return "a join on equal and on null-equal keys runs whole"
    if kind(rel) == "aggregate" and any(len(each.measure.sorts) for each in rel.aggregate.measures):
        return "an ordered aggregate runs whole"
    return _message(body(rel))


def _message(message: Any) -> str | None:
    """Check the expressions and types of a relation, without its inputs."""
    if isinstance(message, Expression) and (reason := _expression(message)):
        return reason
    name = type(message).__name__
    if name == "Type" and message.WhichOneof("kind") not in TYPES:
        return f"type {message.WhichOneof('kind')} runs whole"
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.message_type.name == "Rel":
            continue
        for each in value if descriptor.is_repeated else (value,):
            if reason := _message(each):
                return reason
    return None


def _expression(expression: Expression) -> str | None:
    rex = expression.WhichOneof("rex_type")
    if rex not in EXPRESSIONS:
        return f"expression '{rex}' runs whole"
    if rex == "literal" and expression.literal.WhichOneof("literal_type") not in LITERALS:
        return f"literal {expression.literal.WhichOneof('literal_type')} runs whole"
    if rex == "subquery" and expression.subquery.WhichOneof("subquery_type") != "scalar":
        return "a subquery of this kind runs whole"
    if rex == "selection" and not expression.selection.HasField("root_reference"):
        return "a reference to an outer query runs whole"
    if rex == "window_function":
        return _window(expression.window_function)
    return None


def _window(function: Any) -> str | None:
    is_range = function.bounds_type != function.BOUNDS_TYPE_ROWS
    for bound in (function.lower_bound, function.upper_bound):
        if is_range and bound.WhichOneof("kind") not in _SAFE_BOUNDS:
            return "a window frame with a RANGE offset runs whole"
        if bound.WhichOneof("kind") in ("preceding", "following") and not _offset(bound):
            return "a window frame with an offset of zero runs whole"
    return None


def _offset(bound: Any) -> int:
    return int(getattr(bound, bound.WhichOneof("kind")).offset)
