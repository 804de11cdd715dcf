"""Merges the schemas of many files into the schema of one table."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from caraway_core.errors import DatasetError

types = pa.types
_VIEWS = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}


@dataclass(frozen=True, slots=True)
class NamedSchema:
    """The schema of one file, with the file's name for messages."""

    title: str
    schema: pa.Schema


def merge(files: Iterable[NamedSchema], text_on_conflict: bool) -> pa.Schema:
    """Merge columns by name, in order of first appearance, each with the widest type needed.

    Raises:
        DatasetError: the types of a column are incompatible; the message names file and column.
    """
    fields: dict[str, pa.DataType] = {}
    for file in files:
        for field in file.schema:
            own, other = fields.get(field.name), plain(field.type)
            united = other if own is None else widened(own, other)
            if united is None and text_on_conflict and own is not None:
                united = _as_text(own, other)
            if united is None:
                raise _conflict(field.name, file.title, own, other)
            fields[field.name] = united
    return pa.schema([pa.field(name, type_) for name, type_ in fields.items()])


def finished(schema: pa.Schema) -> pa.Schema:
    """Give columns without any value the type text."""
    return pa.schema([pa.field(field.name, _without_null(field.type)) for field in schema])


def overridden(schema: pa.Schema, declared: Sequence[pa.Field]) -> pa.Schema:
    """Apply declared columns: their types override, and missing columns are added."""
    by_name = {field.name: field.type for field in declared}
    kept = [pa.field(field.name, by_name.pop(field.name, field.type)) for field in schema]
    return pa.schema(kept + [pa.field(name, type_) for name, type_ in by_name.items()])


def viewed(schema: pa.Schema) -> pa.Schema:
    """Return the columns with the types that Parquet files are best read as.

    Scans of plain text and bytes take twice as long as those of views. A statement over lists of a
    fixed size cannot be divided among executors.
    """
    return pa.schema([field.with_type(_viewed(field.type)) for field in schema])


def _viewed(type_: pa.DataType) -> pa.DataType:
    if types.is_fixed_size_list(type_):
        return pa.list_(type_.value_field)
    return _VIEWS.get(type_, type_)


def plain(type_: pa.DataType) -> pa.DataType:
    """Remove encodings (views, large offsets, dictionaries), which do not change the meaning."""
    if types.is_dictionary(type_):
        return plain(type_.value_type)
    if types.is_large_string(type_) or types.is_string_view(type_):
        return pa.string()
    if types.is_large_binary(type_) or types.is_binary_view(type_):
        return pa.binary()
    return type_


def widened(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the narrowest type that can hold both, or None."""
    if left == right or types.is_null(right):
        return left
    if types.is_null(left):
        return right
    for applies, widen in _RULES:
        if applies(left) and applies(right):
            return widen(left, right)
    return None


def _numbers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if types.is_floating(left) and types.is_floating(right):
        return max(left, right, key=lambda each: each.bit_width)
    if types.is_floating(left) or types.is_floating(right):
        return pa.float64()
    if types.is_integer(left) and types.is_integer(right):
        return _integers(left, right)
    return _decimals(_as_decimal(left), _as_decimal(right))


def _integers(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if types.is_signed_integer(left) == types.is_signed_integer(right):
        return max(left, right, key=lambda each: each.bit_width)
    signed, unsigned = sorted((left, right), key=types.is_unsigned_integer)
    width = max(signed.bit_width, 2 * unsigned.bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(width, pa.decimal128(20, 0))


def _as_decimal(type_: pa.DataType) -> pa.DataType:
    return pa.decimal128(20, 0) if types.is_integer(type_) else type_


def _decimals(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    precision = max(left.precision - left.scale, right.precision - right.scale) + scale
    if precision > 76:
        return pa.float64()
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _moments(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    stamps = [each for each in (left, right) if types.is_timestamp(each)]
    if not stamps:
        return pa.date64()
    if len({stamp.tz for stamp in stamps}) > 1:
        return None
    unit = max((stamp.unit for stamp in stamps), key=("s", "ms", "us", "ns").index)
    return pa.timestamp(unit, stamps[0].tz)


def _structs(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    fields = {field.name: plain(field.type) for field in left}
    for field in right:
        united = widened(fields.get(field.name, pa.null()), plain(field.type))
        if united is None:
            return None
        fields[field.name] = united
    return pa.struct([pa.field(name, type_) for name, type_ in fields.items()])


def _lists(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    item = widened(plain(left.value_type), plain(right.value_type))
    return None if item is None else pa.list_(item)


def _is_number(type_: pa.DataType) -> bool:
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def _is_moment(type_: pa.DataType) -> bool:
    return bool(types.is_date(type_) or types.is_timestamp(type_))


def _is_list(type_: pa.DataType) -> bool:
    return bool(types.is_list(type_) or types.is_large_list(type_))


_Rule = tuple[
    Callable[[pa.DataType], bool], Callable[[pa.DataType, pa.DataType], pa.DataType | None]
]
_RULES: tuple[_Rule, ...] = (
    (_is_number, _numbers),
    (_is_moment, _moments),
    (types.is_struct, _structs),
    (_is_list, _lists),
)


def _as_text(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    nested = types.is_nested(left) or types.is_nested(right)
    return None if nested else pa.string()


def _without_null(type_: pa.DataType) -> pa.DataType:
    if types.is_null(type_):
        return pa.string()
    if types.is_struct(type_):
        return pa.struct([pa.field(each.name, _without_null(each.type)) for each in type_])
    return pa.list_(_without_null(type_.value_type)) if types.is_list(type_) else type_


def _conflict(column: str, title: str, own: pa.DataType | None, other: pa.DataType) -> DatasetError:
    return DatasetError(
        "schema",
        f"column '{column}' is {other} in '{title}' and {own} in the files before it, and neither "
        f"type can hold the other; declare its type under `columns`, or use two datasets",
    )
