"""Calls of functions as SQL: those that Substrait defines, and those of the engine."""

from collections.abc import Sequence
from dataclasses import replace

from substrait.type_pb2 import Type

from caraway_engine.client_plans import types, words
from caraway_engine.client_plans.names import PlanFunction
from caraway_engine.client_plans.refusals import refusal, unsupported
from caraway_engine.client_plans.words import PlanTerm

Terms = Sequence[PlanTerm]
_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulus": "%",
    "equal": "=",
    "not_equal": "<>",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
    "is_distinct_from": "IS DISTINCT FROM",
    "is_not_distinct_from": "IS NOT DISTINCT FROM",
    "bitwise_and": "&",
    "bitwise_or": "|",
}
_ENGINE_INFIX = _INFIX | {
    "str_concat": "||",
    "bitwise_shift_left": "<<",
    "bitwise_shift_right": ">>",
    "regex_match": "~",
    "regex_imatch": "~*",
    "regex_not_match": "!~",
    "regex_not_imatch": "!~*",
}
_TESTS = {
    "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL",
    "is_true": "IS TRUE",
    "is_false": "IS FALSE",
    "is_not_true": "IS NOT TRUE",
    "is_not_false": "IS NOT FALSE",
    "is_unknown": "IS UNKNOWN",
    "is_not_unknown": "IS NOT UNKNOWN",
}
_STANDARD_CALLS = {
    "abs": ("abs", 1, 1),
    "sqrt": ("sqrt", 1, 1),
    "exp": ("exp", 1, 1),
    "ln": ("ln", 1, 1),
    "log10": ("log10", 1, 1),
    "ceil": ("ceil", 1, 1),
    "floor": ("floor", 1, 1),
    "coalesce": ("coalesce", 1, 1_000),
    "nullif": ("nullif", 2, 2),
    "is_nan": ("isnan", 1, 1),
    "lower": ("lower", 1, 1),
    "upper": ("upper", 1, 1),
    "char_length": ("character_length", 1, 1),
    "octet_length": ("octet_length", 1, 1),
    "starts_with": ("starts_with", 2, 2),
    "ends_with": ("ends_with", 2, 2),
    "contains": ("contains", 2, 2),
    "replace": ("replace", 3, 3),
    "reverse": ("reverse", 1, 1),
    "strpos": ("strpos", 2, 2),
    "trim": ("btrim", 1, 2),
    "ltrim": ("ltrim", 1, 2),
    "rtrim": ("rtrim", 1, 2),
}
"""Functions of Substrait by name: that of the engine, and how many arguments it takes."""
_PARTS = frozenset({"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "QUARTER"})
_RENAMED = {
    "is_nan": "isnan",
    "overlay": '"overlay"',
    "substring": "substr",
    "trim": "btrim",
}
"""Functions of the engine whose names the parser reads by a syntax of their own."""
_KEYWORDS = frozenset(
    "all and any array between case cast collate convert date exists extract from grouping in "
    "interval is like not null on or position select some time timestamp try_cast unnest values "
    "when where".split()
)
_NEED_ORDER = frozenset({"array_agg", "string_agg", "first_value", "last_value", "nth_value"})
_STANDARD_AGGREGATES = frozenset({"sum", "avg", "min", "max", "count", "bool_and", "bool_or"})
_ENGINE_DIGITS = 4


def scalar(
    function: PlanFunction, arguments: Terms, parts: Sequence[str], type_: Type | None
) -> PlanTerm:
    """Write a call. `parts` are the arguments that are words, such as a part of a date.

    Raises:
        InvalidQueryError: the function is not known, or means something else in the engine.
    """
    name = function.name
    term = _common(name, arguments, function.is_standard)
    if term is None:
        term = (
            _standard(name, arguments, parts)
            if function.is_standard
            else _of_engine(name, arguments)
        )
    elif name == "divide" and function.is_standard:
        _check_digits(arguments[0].type, type_, name)
    if parts and (not function.is_standard or name != "extract"):
        raise unsupported(f"the word {parts[0]!r} as an argument of {name}")
    if function.is_standard:
        term = _of_type(term, type_)
    window = words.any_window(arguments)
    return replace(term, type=type_, has_window=window)


def aggregate(
    function: PlanFunction, arguments: Terms, type_: Type | None, *, is_ordered: bool
) -> str:
    """Return the name that the engine has for an aggregate.

    Raises:
        InvalidQueryError: the function is not known, or means something else in the engine.
    """
    name = function.name
    if name in _NEED_ORDER and not is_ordered:
        raise refusal(f"{name} without an order has no certain answer; give it sorts")
    if not function.is_standard:
        if name in _KEYWORDS and name != "grouping":
            raise unsupported(f"the function {name!r}")
        return name
    if name not in _STANDARD_AGGREGATES:
        raise unsupported(f"the aggregate {name!r}")
    if name == "avg" and (types.is_integer(type_) or not arguments):
        raise unsupported("an average that is a whole number")
    if name == "avg":
        _check_digits(arguments[0].type, type_, name)
    return name


def aggregated(function: PlanFunction, sql: str, type_: Type | None) -> PlanTerm:
    """Return a call of an aggregate with the type that Substrait gives it."""
    term = PlanTerm(sql, type_, is_atomic=True)
    return _of_type(term, type_) if function.is_standard else term


def _of_type(term: PlanTerm, type_: Type | None) -> PlanTerm:
    """Return a number in the type that the plan declares, which the engine's may differ from."""
    if type_ is None or not types.is_number(type_):
        return term
    return PlanTerm(types.cast(term.sql, type_) or term.sql, type_, is_atomic=True)


def _common(name: str, arguments: Terms, is_standard: bool) -> PlanTerm | None:
    """Write a call as an operator of SQL."""
    _check_zones(name, arguments)
    infix = (_INFIX if is_standard else _ENGINE_INFIX).get(name)
    if infix is not None and len(arguments) == 2:
        left, right = arguments
        return PlanTerm(f"{left.operand} {infix} {right.operand}")
    if name in ("and", "or"):
        return _chain(name, arguments)
    if name in _TESTS and len(arguments) == 1:
        return PlanTerm(f"{arguments[0].operand} {_TESTS[name]}")
    if name == "not" and len(arguments) == 1:
        return PlanTerm(f"NOT {arguments[0].operand}")
    if name == "negate" and len(arguments) == 1:
        return PlanTerm(f"-{arguments[0].operand}")
    if name in ("like", "ilike") and len(arguments) in (2, 3):
        return _like(name, arguments)
    return None


def _check_zones(name: str, arguments: Terms) -> None:
    """Refuse to compare timestamps of which only some have a zone."""
    kinds = {types.kind(each.type) for each in arguments}
    if kinds >= {"precision_timestamp", "precision_timestamp_tz"}:
        raise refusal(f"{name} joins timestamps with a zone and without one")


def _chain(name: str, arguments: Terms) -> PlanTerm:
    """Join conditions without parentheses around those that the same word joins already."""
    if not arguments:
        return PlanTerm("TRUE" if name == "and" else "FALSE", is_atomic=True)
    if len(arguments) == 1:
        return arguments[0]
    sql = f" {name.upper()} ".join(
        each.sql if each.chain == name else each.operand for each in arguments
    )
    return PlanTerm(sql, chain=name)


def _like(name: str, arguments: Terms) -> PlanTerm:
    value, pattern, *rest = arguments
    escape = ""
    if rest and rest[0].sql != "NULL" and not rest[0].sql.startswith("CAST(NULL "):
        if not rest[0].is_literal:
            raise unsupported(f"{name} with an escape character that is no literal")
        escape = f" ESCAPE {rest[0].sql}"
    return PlanTerm(f"{value.operand} {name.upper()} {pattern.operand}{escape}")


def _of_engine(name: str, arguments: Terms) -> PlanTerm:
    name = _RENAMED.get(name, name)
    if name in _KEYWORDS:
        raise unsupported(f"the function {name!r}")
    return PlanTerm(f"{name}({words.listed(arguments)})", is_atomic=True)


def _standard(name: str, arguments: Terms, parts: Sequence[str]) -> PlanTerm:
    """Write a function by the definition of Substrait."""
    count = len(arguments)
    if name in _STANDARD_CALLS:
        called, least, most = _STANDARD_CALLS[name]
        if least <= count <= most:
            return PlanTerm(f"{called}({words.listed(arguments)})", is_atomic=True)
    match name, count:
        case "concat", _ if count >= 2:
            # Substrait leaves open what NULL does; this is what SQL does with `||`.
            return PlanTerm(" || ".join(each.operand for each in arguments))
        case "between", 3:
            value, low, high = arguments
            return PlanTerm(f"{value.operand} BETWEEN {low.operand} AND {high.operand}")
        case "substring", 2 | 3:
            return _substring(arguments)
        case "extract", 1:
            return _extract(arguments[0], parts)
    raise unsupported(f"the function {name!r} with {count} arguments")


def _substring(arguments: Terms) -> PlanTerm:
    for each in arguments[1:]:
        if not (each.is_literal and each.sql.removeprefix("CAST('").split("'")[0].isdigit()):
            raise unsupported("substring with a position or length that is no literal above 0")
    return PlanTerm(f"substr({words.listed(arguments)})", is_atomic=True)


def _extract(argument: PlanTerm, parts: Sequence[str]) -> PlanTerm:
    word, *more = parts or [""]
    has_index = word in ("QUARTER", "MONTH", "DAY") and more == ["ONE"]
    if word not in _PARTS or (more and not has_index):
        raise unsupported(f"the part {' '.join(parts)!r} of a date")
    if types.kind(argument.type) not in ("date", "precision_timestamp"):
        raise unsupported("extract from other values than dates and timestamps without a zone")
    return PlanTerm(f"date_part('{word.lower()}', {argument.sql})", is_atomic=True)


def _check_digits(argument: Type | None, type_: Type | None, name: str) -> None:
    """Refuse a decimal with more digits after the point than the engine computes."""
    if types.kind(type_) != "decimal":
        return
    assert type_ is not None
    is_known = argument is not None and types.kind(argument) == "decimal"
    scale = argument.decimal.scale if is_known and argument is not None else 0
    if type_.decimal.scale > scale + _ENGINE_DIGITS:
        raise unsupported(
            f"{name} with {type_.decimal.scale} digits after the point: the engine computes "
            f"{scale + _ENGINE_DIGITS}; cast to a double first, or"
        )
