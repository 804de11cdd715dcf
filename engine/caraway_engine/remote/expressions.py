"""Translates expressions of Substrait plans to SQL for the database."""

import datetime
from collections.abc import Sequence
from decimal import MAX_PREC, Context, Decimal
from functools import reduce
from math import isnan

import pyarrow as pa
from substrait.algebra_pb2 import AggregateFunction, Expression
from substrait.type_pb2 import Type

from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.words import SqlWriter
from caraway_engine.stages.functions import Functions
from caraway_engine.stages.relations import field_of

_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECONDS = 6
_ONE_NAN = "nanvl"
"""The function by which the engine makes all kinds of NaN one, with NaN as its other argument."""
_WHOLE = 20
"""Decimals with this number of digits keep all whole numbers."""
_COMPARISONS = frozenset({"equal", "not_equal", "lt", "lte", "gt", "gte"})
_ARITHMETIC = frozenset({"add", "subtract", "multiply", "bitwise_shift_right"})


def scalar(
    expression: Expression, columns: Sequence[Term], functions: Functions, writer: SqlWriter
) -> Term:
    """Translate an expression over the columns of its input.

    Raises:
        NotPushableError: the database may compute a different result.
    """
    match expression.WhichOneof("rex_type"):
        case "selection":
            field = field_of(expression)
            if field is None:
                raise NotPushableError("a field of a field")
            return columns[field]
        case "literal":
            return writer.literal(value_of(expression.literal))
        case "cast":
            if expression.cast.failure_behavior == Expression.Cast.FAILURE_BEHAVIOR_RETURN_NULL:
                raise NotPushableError("a cast that fails with NULL")
            if (whole := _negated(expression.cast.input, functions)) is not None:
                inner = writer.called("negate", [scalar(whole, columns, functions, writer)])
                if inner.kind != "int":
                    raise NotPushableError("a rounded number")
            else:
                inner = scalar(expression.cast.input, columns, functions, writer)
            return writer.cast(inner, _arrow(expression.cast.type))
        case "singular_or_list":
            singular_or_list = expression.singular_or_list
            options = [
                scalar(each, columns, functions, writer) for each in singular_or_list.options
            ]
            return writer.among(scalar(singular_or_list.value, columns, functions, writer), options)
        case "scalar_function":
            return _call(expression.scalar_function, columns, functions, writer)
        case "if_then":
            made = _guarded if _is_guard(expression.if_then, functions) else _chosen
            return made(expression.if_then, columns, functions, writer)
        case other:
            raise NotPushableError(str(other))


def measure(
    function: AggregateFunction,
    condition: Term | None,
    columns: Sequence[Term],
    functions: Functions,
    writer: SqlWriter,
) -> Term:
    """Translate an aggregate over the columns of its input.

    Raises:
        NotPushableError: the database may compute a different result.
    """
    name = functions.name(function.function_reference)
    if len(function.sorts) or len(function.options):
        raise NotPushableError(name)
    arguments = [scalar(each.value, columns, functions, writer) for each in function.arguments]
    if not all(each.is_exact for each in arguments):
        raise NotPushableError(name)
    is_distinct = function.invocation == AggregateFunction.AGGREGATION_INVOCATION_DISTINCT
    if condition is not None and (condition.kind != "bool" or not condition.is_exact):
        raise NotPushableError("filter")
    if condition is not None:
        writer.need("filter")
    only = "" if condition is None else f" FILTER (WHERE {condition.sql})"
    if name == "count":
        return _count(function, arguments, only, writer)
    if len(arguments) != 1 or is_distinct:
        raise NotPushableError(name)
    (argument,) = arguments
    match name:
        case "sum":
            return writer.sum(argument, only)
        case "avg":
            return writer.average(argument, only)
        case "min" | "max":
            return writer.extreme(name, argument, only)
    raise NotPushableError(name)


def value_of(literal: Expression.Literal) -> object:
    """Return a literal as a Python value.

    Raises:
        NotPushableError: Python has no such value, or it is NULL.
    """
    kind = literal.WhichOneof("literal_type")
    if literal.type_variation_reference and kind != "string":
        return _without_sign(literal)
    try:
        match kind:
            case "boolean" | "i8" | "i16" | "i32" | "i64" | "fp32" | "fp64" | "string":
                return getattr(literal, kind)
            case "date":
                return (_EPOCH + datetime.timedelta(days=literal.date)).date()
            case "decimal":
                number = int.from_bytes(literal.decimal.value, "little", signed=True)
                # Python's own context would round to 28 digits.
                return Decimal(number).scaleb(-literal.decimal.scale, Context(prec=MAX_PREC))
            case "precision_timestamp" | "precision_timestamp_tz":
                found = getattr(literal, kind)
                return moment(found.value, found.precision, has_zone=kind.endswith("tz"))
    except OverflowError as exc:
        raise NotPushableError(str(kind)) from exc
    raise NotPushableError(str(kind))


def _without_sign(literal: Expression.Literal) -> int:
    kind = literal.WhichOneof("literal_type")
    if kind not in _BITS or literal.type_variation_reference != _UNSIGNED:
        raise NotPushableError(f"a {kind} of another kind")
    return int(getattr(literal, kind)) % (1 << _BITS[kind])


def moment(value: int, precision: int, *, has_zone: bool) -> datetime.datetime:
    """Return a number of parts of a second since 1970, of which Python has microseconds.

    Raises:
        NotPushableError: it has nanoseconds.
    """
    finer = 10 ** max(0, precision - _MICROSECONDS)
    if value % finer:
        raise NotPushableError("nanoseconds")
    micros = value // finer * 10 ** max(0, _MICROSECONDS - precision)
    made = _EPOCH + datetime.timedelta(microseconds=micros)
    return made.replace(tzinfo=datetime.UTC) if has_zone else made


def _chosen(
    then: Expression.IfThen, columns: Sequence[Term], functions: Functions, writer: SqlWriter
) -> Term:
    def translated(each: Expression) -> Term:
        return scalar(each, columns, functions, writer)

    def value(each: Expression) -> Term | None:
        is_null = each.literal.WhichOneof("literal_type") == "null"
        return None if is_null or each.WhichOneof("rex_type") is None else translated(each)

    clauses = list(then.ifs)
    # The first clause of `CASE x WHEN ...` has no value, and is x.
    base = None
    if not clauses[0].HasField("then"):
        base = translated(getattr(clauses.pop(0), "if"))
    cases = []
    for each in clauses:
        test = translated(getattr(each, "if"))
        test = test if base is None else writer.compared("equal", base, test)
        cases.append((test, value(each.then)))
    return writer.chosen(cases, value(getattr(then, "else")))


def _negated(expression: Expression, functions: Functions) -> Expression | None:
    """Return the whole number that an expression negates as the engine does, as a decimal."""
    found = expression.scalar_function
    is_difference = functions.name(found.function_reference) == "subtract"
    if not is_difference or len(found.arguments) != 2:
        return None
    zero, whole = (each.value for each in found.arguments)
    type_ = whole.cast.type.decimal
    if not _is_literal(zero) or value_of(zero.literal) != 0:
        return None
    if whole.cast.type.WhichOneof("kind") != "decimal" or type_.scale or type_.precision < _WHOLE:
        return None
    return whole.cast.input


def _is_guard(then: Expression.IfThen, functions: Functions) -> bool:
    """Return whether a CASE may be arithmetic that the engine guards against an overflow."""
    plain: Expression = getattr(then, "else")
    cast = then.ifs[0].then.cast
    exact, scalar_function = cast.input.scalar_function, plain.scalar_function
    return (
        len(then.ifs) == 1
        and cast.type.WhichOneof("kind") == "i64"
        and not cast.type.i64.type_variation_reference
        and len(exact.arguments) == len(scalar_function.arguments) == 2
        and exact.function_reference == scalar_function.function_reference
        and functions.name(scalar_function.function_reference) in _ARITHMETIC
    )


def _guarded(
    then: Expression.IfThen, columns: Sequence[Term], functions: Functions, writer: SqlWriter
) -> Term:
    """Translate arithmetic of 64 bits that the engine guards against an overflow.

    Databases that do it exactly fail where it overflows, as the guard does.

    Raises:
        NotPushableError: it is another expression, or not exact.
    """
    plain: Expression = getattr(then, "else")
    exact, scalar_function = then.ifs[0].then.cast.input.scalar_function, plain.scalar_function
    for wide, narrow in zip(exact.arguments, scalar_function.arguments, strict=True):
        if _is_literal(wide.value) and value_of(wide.value.literal) == value_of(
            narrow.value.literal
        ):
            continue
        whole = wide.value.cast.input
        is_whole = scalar(whole, columns, functions, writer).kind == "int"
        is_decimal = wide.value.cast.type.WhichOneof("kind") == "decimal"
        is_same = narrow.value in (whole, _as_i64(whole, narrow.value))
        if not (is_whole and is_decimal and is_same):
            raise NotPushableError("if_then")
    return scalar(plain, columns, functions, writer)


def _is_literal(expression: Expression) -> bool:
    return bool(expression.WhichOneof("rex_type") == "literal")


def _as_i64(whole: Expression, like: Expression) -> Expression:
    """Return a number as one of 64 bits, in the form of another expression."""
    expression = Expression()
    expression.CopyFrom(like)
    if like.cast.type.WhichOneof("kind") == "i64":
        expression.cast.input.CopyFrom(whole)
    return expression


def _call(
    function: Expression.ScalarFunction,
    columns: Sequence[Term],
    functions: Functions,
    writer: SqlWriter,
) -> Term:
    name = functions.name(function.function_reference)
    if name in ("like", "ilike"):
        return _like(name, function, columns, functions, writer)
    arguments = [each.value for each in function.arguments]
    if name == _ONE_NAN and isnan(arguments[1].literal.fp64):
        arguments = arguments[:1]
    operands = [scalar(each, columns, functions, writer) for each in arguments]
    if name in ("and", "or"):
        return reduce(lambda left, right: writer.both(name, left, right), operands)
    if name in _COMPARISONS and len(operands) == 2:
        return writer.compared(name, *operands)
    if name in _ARITHMETIC and len(operands) == 2:
        return writer.computed(name, *operands)
    match name:
        case "not":
            return writer.negated(*operands)
        case "is_null" | "is_not_null":
            return writer.null_test(*operands, is_null=name == "is_null")
    return writer.called(name, operands)


def _like(
    name: str,
    function: Expression.ScalarFunction,
    columns: Sequence[Term],
    functions: Functions,
    writer: SqlWriter,
) -> Term:
    value, pattern, *escape = (each.value for each in function.arguments)
    if name != "like" or any(each.literal.WhichOneof("literal_type") != "null" for each in escape):
        raise NotPushableError(name)
    text = value_of(pattern.literal) if pattern.WhichOneof("rex_type") == "literal" else None
    if not isinstance(text, str):
        raise NotPushableError(name)
    return writer.alike(scalar(value, columns, functions, writer), text)


def _count(
    function: AggregateFunction, arguments: Sequence[Term], only: str, writer: SqlWriter
) -> Term:
    is_constant = all(each.value.WhichOneof("rex_type") == "literal" for each in function.arguments)
    is_distinct = function.invocation == AggregateFunction.AGGREGATION_INVOCATION_DISTINCT
    if is_constant and not is_distinct:
        return writer.count(None, only)
    if len(arguments) != 1 or (is_distinct and arguments[0].kind in ("", "double")):
        raise NotPushableError("count")
    return writer.count(arguments[0], only, is_distinct=is_distinct)


def _arrow(type_: Type) -> pa.DataType:
    kind = type_.WhichOneof("kind")
    if kind == "decimal":
        return pa.decimal128(type_.decimal.precision, type_.decimal.scale)
    variation = getattr(type_, str(kind)).type_variation_reference
    if variation == _UNSIGNED and kind in _BITS:
        return _UNSIGNED_TYPES[kind]
    if kind not in _TYPES or (kind != "string" and variation):
        raise NotPushableError(f"a cast to {kind}")
    return _TYPES[kind]


_UNSIGNED = 1
"""The variation of integers without a sign."""
_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
_UNSIGNED_TYPES = {"i8": pa.uint8(), "i16": pa.uint16(), "i32": pa.uint32(), "i64": pa.uint64()}
_TYPES = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "fp64": pa.float64(),
    "string": pa.string(),
}
