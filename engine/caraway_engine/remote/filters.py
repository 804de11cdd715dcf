"""Parses the filters that DataFusion pushes into a scan, which are pyarrow expressions.

pyarrow exposes an expression only in its serialized form: the batch that it pickles. The metadata
of that batch lists the calls in order, as `call`, `field_ref`, `literal`, `options` and `end`.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.tables import RemoteColumn
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.words import SqlWriter

_NAMES = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "lt",
    "less_equal": "lte",
    "greater": "gt",
    "greater_equal": "gte",
}
_LOGIC = {"and_kleene": "and", "or_kleene": "or"}
_TESTS: Mapping[str, Callable[..., Any]] = {
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less": pc.less,
    "less_equal": pc.less_equal,
    "greater": pc.greater,
    "greater_equal": pc.greater_equal,
}
_OTHERS: Mapping[str, Callable[..., Any]] = {
    "and_kleene": pc.and_kleene,
    "or_kleene": pc.or_kleene,
    "invert": pc.invert,
    "is_null": pc.is_null,
    "is_valid": pc.is_valid,
}
_AMONG = "is_in"


@dataclass(frozen=True, slots=True)
class FilterCall:
    """A node of an expression: a function call, a column (`field`) or a value (`literal`).

    `value` is the column name, the value, or the options of the function.
    """

    name: str
    operands: tuple["FilterCall", ...] = ()
    value: Any = None


def read(expression: Any) -> FilterCall:
    """Parse a pyarrow expression.

    Raises:
        NotPushableError: its serialized form is not known.
    """
    _, (buffer,) = expression.__reduce__()
    batch = pa.ipc.open_file(buffer).get_batch(0)
    return _call(_metadata(batch.schema), batch)


def conjuncts(call: FilterCall) -> Sequence[FilterCall]:
    """Return the conditions that an expression combines with AND."""
    if call.name != "and_kleene":
        return (call,)
    return tuple(each for operand in call.operands for each in conjuncts(operand))


def columns(call: FilterCall) -> frozenset[str]:
    """Return the columns that a condition reads."""
    own = {call.value} if call.name == "field" else set()
    return frozenset(own.union(*map(columns, call.operands)))


def is_known(call: FilterCall) -> bool:
    """Return whether `evaluate` supports every function of a condition."""
    if call.name in ("field", "literal"):
        return True
    return (call.name in _TESTS or call.name in _OTHERS or call.name == _AMONG) and all(
        map(is_known, call.operands)
    )


def sql(call: FilterCall, known: Mapping[str, RemoteColumn], writer: SqlWriter) -> Term:
    """Translate a condition to SQL.

    Raises:
        NotPushableError: the database may answer it differently.
    """
    if call.name == "field":
        return writer.column(known[call.value])
    if call.name == "literal":
        return writer.literal(value_of(call.value))
    operands = [sql(each, known, writer) for each in call.operands]
    if call.name in _NAMES:
        return writer.compared(_NAMES[call.name], *operands)
    if call.name in _LOGIC:
        return writer.both(_LOGIC[call.name], *operands)
    match call.name:
        case "invert":
            return writer.negated(*operands)
        case "is_in":
            return writer.among(
                operands[0], [writer.literal(value_of(each)) for each in options(call)]
            )
        case "is_null" | "is_valid":
            return writer.null_test(*operands, is_null=call.name == "is_null")
    raise NotPushableError(call.name)


def value_of(scalar: pa.Scalar) -> object:
    """Return a value of Python.

    Raises:
        NotPushableError: Python has none.
    """
    try:
        return scalar.as_py()
    except ValueError as exc:  # Python has no nanoseconds and no years after 9999.
        raise NotPushableError(str(scalar.type)) from exc


def evaluate(call: FilterCall, batch: pa.RecordBatch) -> object:
    """Evaluate a supported condition, comparing NaN as the engine does."""
    if call.name == "field":
        return batch.column(call.value)
    if call.name == "literal":
        return call.value
    operands = [evaluate(each, batch) for each in call.operands]
    if call.name in _TESTS:
        return _TESTS[call.name](*map(_key, operands))
    if call.name == _AMONG:
        return _among(operands[0], call)
    return _OTHERS[call.name](*operands)


def options(call: FilterCall) -> pa.Array:
    """Return the values of a list."""
    return call.value["value_set"].values


def _among(values: Any, call: FilterCall) -> object:
    """Return which values are in a list. Unlike in pyarrow, the result for NULL is NULL."""
    among = _key(options(call).cast(values.type))
    return pc.if_else(pc.is_valid(values), pc.is_in(_key(values), value_set=among), None)


def _key(operand: Any) -> object:
    """Return floating-point values as integers that sort in the engine's order.

    This is the total order of IEEE 754, except that both zeros are equal.
    """
    if not pa.types.is_floating(operand.type):
        return operand
    is_value = isinstance(operand, pa.Scalar)
    values = pa.array([operand.as_py()], operand.type) if is_value else operand
    width = values.type.bit_width
    type_ = {32: pa.int32(), 64: pa.int64()}[width]
    # Adding 0.0 turns -0.0 into 0.0.
    bits = pc.add(values, pa.scalar(0.0, values.type)).view(type_)
    turned = pc.bit_wise_xor(bits, pa.scalar(2 ** (width - 1) - 1, type_))
    keys = pc.if_else(pc.less(bits, pa.scalar(0, type_)), turned, bits)
    return keys[0] if is_value else keys


def _call(tokens: Sequence[tuple[str, str]], batch: pa.RecordBatch) -> FilterCall:
    """Build the calls from last to first, so that operands exist before their call."""
    open_calls: list[list[FilterCall]] = [[]]
    for kind, value in reversed(tokens):
        match kind:
            case "end":
                open_calls.append([])
            case "field_ref":
                open_calls[-1].append(FilterCall("field", value=value))
            case "literal":
                open_calls[-1].append(FilterCall("literal", value=batch.column(int(value))[0]))
            case "call":
                inside = list(reversed(open_calls.pop()))
                options = next((each.value for each in inside if each.name == "options"), None)
                operands = tuple(each for each in inside if each.name != "options")
                open_calls[-1].append(FilterCall(value, operands, options))
            case "options":
                # The options of is_in hold the values. Those of is_null say that NaN is not NULL.
                open_calls[-1].append(FilterCall("options", value=batch.column(int(value))[0]))
            case _:
                raise NotPushableError(kind)
    ((call,),) = open_calls
    return call


def _metadata(schema: pa.Schema) -> Sequence[tuple[str, str]]:
    """Return all pairs of a schema's metadata; pyarrow's dict keeps only one pair per key."""
    capsule = schema.__arrow_c_schema__()
    pointer = _pointer_of(capsule, b"arrow_schema")
    metadata = ctypes.cast(pointer, ctypes.POINTER(_ArrowSchema)).contents.metadata
    pairs, offset = [], 0

    def number() -> int:
        nonlocal offset
        offset += 4
        return ctypes.c_int32.from_address(metadata + offset - 4).value

    def text() -> str:
        nonlocal offset
        size = number()
        offset += size
        return ctypes.string_at(metadata + offset - size, size).decode()

    for _ in range(number()):
        key = text()
        pairs.append((key, text()))
    return pairs


class _ArrowSchema(ctypes.Structure):
    """The first fields of ArrowSchema in Arrow's C data interface."""

    _fields_ = [
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    ]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
