"""Guards sums that may overflow, because DataFusion 55 wraps numbers and durations around.

A guard is a second aggregate that shows approximately how large the sum is. Averages of durations
are computed from a sum of DECIMALs, which has room for them.
"""

from collections.abc import Callable
from typing import TypeGuard

import pyarrow as pa

from caraway_engine.errors.engine_messages import OVERFLOW
from caraway_engine.known_faults import ranges, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.known_faults.scopes import SelectScope
from caraway_engine.known_faults.syntax import Tree

_AVERAGES = frozenset({"avg", "mean"})
_ROWS = 2**32
"""No sum has more rows, so sums of 32-bit numbers cannot overflow."""
# Over no rows a sum is NULL, and this text must be NULL, too: the optimizer evaluates constant
# expressions.
_TOO_LARGE = "CAST(replace('{error} in sum of {name} #', '#', CAST({sum} AS VARCHAR)) AS {type})"
_GUARDED = "CASE WHEN {test} THEN {fail} ELSE __sum END"
# A sum that wrapped around differs from the correct one by a multiple of 2^64. Shifted, it differs
# by a multiple of 2^32 from the sum of the shifted rows. A correct sum exceeds that by less than
# 2^32.
_SIGNED_TEST = "({sum} >> 32) - __high NOT BETWEEN 0 AND 4294967295"
_UNSIGNED_TEST = "__high > ({sum} >> 32)"
_DECIMAL_TEST = "abs(__high) >= {wrapping} OR __sum > {most} OR __sum < -{most}"
_WIDE_TEST = "__sum > {most} OR __sum < -{most}"
_MOST_DIGITS = 38
_WRAPS = 1.5e38
"""A sum of decimals below this has not wrapped around at 2^127."""
# The engine names columns without their casts, so a sum of a cast would have the name of the other
# sum.
_AS_DOUBLE = "CAST(__a AS DOUBLE) * 1e0"
_UNITS = "CAST(__a AS BIGINT)"
_EXACT_UNITS = "arrow_cast(CAST(__a AS BIGINT), 'Decimal128(20, 0)')"
_EXACT_AVERAGE = "arrow_cast(CAST(__sum / __count AS BIGINT), '{duration}')"
_DURATIONS = {
    "s": "Duration(Second)",
    "ms": "Duration(Millisecond)",
    "us": "Duration(Microsecond)",
    "ns": "Duration(Nanosecond)",
}

# A sum of sums has a wider type, unless it already has the widest.
_OF_ONE_TYPE = "CAST(__sum AS DECIMAL({precision}, {scale}))"

TypeOf = Callable[[Tree], pa.DataType | None]
Guarded = Callable[[Tree], Tree]


def is_one(tree: Tree) -> bool:
    """Return whether an expression is a sum or an average."""
    name = syntax.function_name(tree)
    return (name == "sum" or name in _AVERAGES) and len(syntax.arguments(tree)) == 1


def keep_types(scope: SelectScope, types: Types) -> bool:
    """Keep the types of decimal sums next to DISTINCT aggregates; return whether there are any.

    The engine splits such a SELECT into two groupings, with sums of sums. It does not expect their
    types to differ, and fails when it compares them.
    """
    calls = [each for each in scope.expressions() if syntax.kind(each) == "Function"]
    grouped = [each for each in calls if not syntax.is_windowed(each)]
    if not any(map(syntax.is_distinct, grouped)):
        return False
    plain = [each for each in grouped if is_one(each) and not syntax.is_distinct(each)]
    sums = [each for each in plain if syntax.function_name(each) == "sum"]
    found = zip(sums, types.types_of(scope, sums), strict=True)
    changes = [(each, type_) for each, type_ in found if _may_widen(type_)]
    for node, type_ in changes:
        (argument,) = syntax.arguments(node)
        widest = syntax.filled(f"CAST(__a AS DECIMAL({_MOST_DIGITS}, {type_.scale}))", a=argument)
        text = _OF_ONE_TYPE.format(precision=type_.precision, scale=type_.scale)
        tree = syntax.filled(text, sum=syntax.with_argument(node, widest))
        syntax.replace(node, {"Nested": tree})
    return bool(changes)


def _may_widen(type_: pa.DataType | None) -> TypeGuard[pa.Decimal128Type]:
    if type_ is None or not pa.types.is_decimal128(type_):
        return False
    return bool(type_.precision < _MOST_DIGITS)


def guarded(node: Tree, type_: pa.DataType | None, type_of: TypeOf) -> Guarded | None:
    """Return a function that guards a copy of a sum or an average, or None if it is safe."""
    (argument,) = syntax.arguments(node)
    given = type_of(argument)
    if given is None or type_ is None:
        return None
    if pa.types.is_duration(given):
        is_average = syntax.function_name(node) in _AVERAGES
        return _average(given) if is_average else _sum_of_lengths(node, given)
    if syntax.function_name(node) in _AVERAGES:
        return None  # The engine's averages are doubles, or fail on overflow.
    found = ranges.of(argument, type_of)
    if found is None:
        return None
    most = found.magnitude * _ROWS
    if pa.types.is_decimal128(type_):
        if most <= 10 ** (_MOST_DIGITS - type_.scale):
            return None
        # Different decimals may be one double, so a second DISTINCT sum would miss some of them.
        is_exact = syntax.is_distinct(node) or scopes.is_costly(node)
        return _exact_sum_of_decimals(type_) if is_exact else _sum_of_decimals(type_)
    if type_ not in (pa.int64(), pa.uint64()) or most <= 2**63:
        return None
    name = "BIGINT" if type_ == pa.int64() else "BIGINT UNSIGNED"
    if syntax.is_distinct(node) or scopes.is_costly(node):
        return lambda copy: _exact_sum(copy, name)
    test = _SIGNED_TEST if type_ == pa.int64() else _UNSIGNED_TEST
    return _shifted(test.format(sum="__sum"), _failure(name, name), "__a")


def _failure(name: str, type_: str, sum_: str = "__sum") -> str:
    return _TOO_LARGE.format(error=OVERFLOW, name=name, type=type_, sum=sum_)


def _shifted(test: str, fail: str, units: str) -> Guarded:
    text = _GUARDED.format(test=test, fail=fail)

    def made(copy: Tree) -> Tree:
        (argument,) = syntax.arguments(copy)
        high = syntax.with_argument(copy, syntax.filled(f"{units} >> 32", a=argument))
        return syntax.filled(text, sum=copy, high=high)

    return made


def _exact_sum(copy: Tree, name: str) -> Tree:
    (argument,) = syntax.arguments(copy)
    wide = syntax.filled("CAST(__a AS DECIMAL(38, 0))", a=argument)
    return syntax.filled(f"CAST(__a AS {name})", a=syntax.with_argument(copy, wide))


def _sum_of_decimals(type_: pa.DataType) -> Guarded:
    decimal = f"DECIMAL({_MOST_DIGITS}, {type_.scale})"
    test = _DECIMAL_TEST.format(
        wrapping=repr(_WRAPS / 10**type_.scale), most=f"CAST('{_largest(type_)}' AS {decimal})"
    )
    text = _GUARDED.format(test=test, fail=_failure("DECIMAL", decimal))

    def made(copy: Tree) -> Tree:
        (argument,) = syntax.arguments(copy)
        high = syntax.with_argument(copy, syntax.filled(_AS_DOUBLE, a=argument))
        return syntax.filled(text, sum=copy, high=high)

    return made


def _largest(type_: pa.Decimal128Type) -> str:
    digits = "9" * _MOST_DIGITS
    return f"{digits[: _MOST_DIGITS - type_.scale]}.{digits[: type_.scale]}".rstrip(".")


def _exact_sum_of_decimals(type_: pa.Decimal128Type) -> Guarded:
    decimal = f"DECIMAL({_MOST_DIGITS}, {type_.scale})"
    text = _GUARDED.format(
        test=_WIDE_TEST.format(most=f"CAST('{_largest(type_)}' AS {decimal})"),
        fail=_failure("DECIMAL", decimal),
    )
    wide = f"arrow_cast(__a, 'Decimal256(76, {type_.scale})')"

    def made(copy: Tree) -> Tree:
        (argument,) = syntax.arguments(copy)
        sum_ = syntax.with_argument(copy, syntax.filled(wide, a=argument))
        return syntax.filled(f"CAST(__a AS {decimal})", a=syntax.filled(text, sum=sum_))

    return made


def _sum_of_lengths(node: Tree, given: pa.DataType) -> Guarded:
    units, duration = "CAST(__sum AS BIGINT)", _DURATIONS[given.unit]
    if syntax.is_distinct(node) or scopes.is_costly(node):

        def made(copy: Tree) -> Tree:
            (argument,) = syntax.arguments(copy)
            whole = syntax.with_argument(copy, syntax.filled(_UNITS, a=argument))
            return syntax.filled(f"arrow_cast(__a, '{duration}')", a=_exact_sum(whole, "BIGINT"))

        return made
    fail = f"arrow_cast({_failure('INTERVAL', 'BIGINT', units)}, '{duration}')"
    return _shifted(_SIGNED_TEST.format(sum=units), fail, _UNITS)


def _average(given: pa.DataType) -> Guarded:
    text = _EXACT_AVERAGE.format(duration=_DURATIONS[given.unit])

    def made(copy: Tree) -> Tree:
        (argument,) = syntax.arguments(copy)
        units = syntax.filled(_EXACT_UNITS, a=argument)
        return syntax.filled(
            text,
            sum=syntax.with_argument(copy, units, "sum"),
            count=syntax.with_argument(copy, units, "count"),
        )

    return made
