"""Types of Substrait: their names in SQL, and whether the columns of a table have them."""

from collections.abc import Callable, Sequence

import pyarrow as pa
from substrait.type_pb2 import Type

_UNSIGNED = 1
_UNITS = {0: "Second", 3: "Millisecond", 6: "Microsecond", 9: "Nanosecond"}
_ARROW_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
_INTEGERS = {"i8": "TINYINT", "i16": "SMALLINT", "i32": "INT", "i64": "BIGINT"}
_NAMED = {
    "bool": "BOOLEAN",
    "fp32": "REAL",
    "fp64": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
}
_MOST_DIGITS = 38
_NUMBERS = frozenset({"i8", "i16", "i32", "i64", "fp32", "fp64", "decimal"})


def kind(type_: Type | None) -> str:
    """Return the kind of a type, such as `i64`, or "" where it is not known."""
    return "" if type_ is None else str(type_.WhichOneof("kind") or "")


def is_number(type_: Type | None) -> bool:
    """Return whether a type is one of numbers."""
    return kind(type_) in _NUMBERS


def is_integer(type_: Type | None) -> bool:
    """Return whether a type is one of whole numbers."""
    return kind(type_) in _WIDTHS


def are_integers(*all_: Type | None) -> bool:
    """Return whether all types are signed whole numbers, of which the larger has each value."""
    return all(
        is_integer(each) and not getattr(each, kind(each)).type_variation_reference for each in all_
    )


def cast(sql: str, type_: Type, *, or_null: bool = False) -> str | None:
    """Return an expression of the type, or None for types that have no cast."""
    name = _name(type_)
    if name is not None:
        return f"{'TRY_CAST' if or_null else 'CAST'}({sql} AS {name})"
    arrow = arrow_name(type_)
    return None if arrow is None or or_null else f"arrow_cast({sql}, '{arrow}')"


def arrow_name(type_: Type) -> str | None:
    """Return how `arrow_cast` calls a type of moments or bytes."""
    match kind(type_):
        case "precision_timestamp":
            unit = _UNITS.get(type_.precision_timestamp.precision)
            return unit and f"Timestamp({unit}, None)"
        case "precision_timestamp_tz":
            unit = _UNITS.get(type_.precision_timestamp_tz.precision)
            return unit and f'Timestamp({unit}, Some("UTC"))'
        case "precision_time":
            precision = type_.precision_time.precision
            unit = _UNITS.get(precision)
            return unit and f"{'Time64' if precision >= 6 else 'Time32'}({unit})"
        case "binary":
            return "Binary"
    return None


def has(arrow: pa.DataType, type_: Type) -> bool:
    """Return whether a column of a table has the type that a plan says it has."""
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    found = kind(type_)
    if found in _WIDTHS:
        is_unsigned = getattr(type_, found).type_variation_reference == _UNSIGNED
        sign = pa.types.is_unsigned_integer if is_unsigned else pa.types.is_signed_integer
        return bool(sign(arrow)) and arrow.bit_width == _WIDTHS[found]
    match found:
        case "decimal":
            said = (type_.decimal.precision, type_.decimal.scale)
            return bool(pa.types.is_decimal(arrow)) and (arrow.precision, arrow.scale) == said
        case "precision_timestamp" | "precision_timestamp_tz":
            if not pa.types.is_timestamp(arrow):
                return False
            has_zone = found.endswith("tz")
            precision = getattr(type_, found).precision
            return (arrow.tz is None) != has_zone and _ARROW_UNITS[arrow.unit] == int(precision)
        case "precision_time":
            is_time = bool(pa.types.is_time(arrow))
            return is_time and _ARROW_UNITS[arrow.unit] == type_.precision_time.precision
        case "list":
            is_list = pa.types.is_list(arrow) or pa.types.is_large_list(arrow)
            is_list = is_list or pa.types.is_fixed_size_list(arrow)
            return is_list and has(arrow.value_type, type_.list.type)
        case "struct":
            parts = type_.struct.types
            is_same = pa.types.is_struct(arrow) and arrow.num_fields == len(parts)
            return is_same and all(
                has(arrow.field(index).type, part) for index, part in enumerate(parts)
            )
        case "map":
            return pa.types.is_map(arrow) and (
                has(arrow.key_type, type_.map.key) and has(arrow.item_type, type_.map.value)
            )
        case "user_defined":
            return True
    test = _TESTS.get(found)
    return test is not None and test(arrow)


def names_of(type_: Type) -> int:
    """Return how many names a column has, counting those of the fields inside it."""
    return 1 + _inner_names(type_)


def _inner_names(type_: Type) -> int:
    match kind(type_):
        case "struct":
            return sum(map(names_of, type_.struct.types))
        case "list":
            return _inner_names(type_.list.type)
        case "map":
            return _inner_names(type_.map.key) + _inner_names(type_.map.value)
    return 0


def columns_of(names: Sequence[str], struct: Type.Struct) -> list[tuple[str, Type]] | None:
    """Return the columns of a schema; None if the names are not as many as the types have."""
    made: list[tuple[str, Type]] = []
    place = 0
    for each in struct.types:
        if place >= len(names):
            return None
        made.append((names[place], each))
        place += names_of(each)
    return made if place == len(names) else None


def described(type_: Type) -> str:
    """Return a type as messages call it."""
    found = kind(type_)
    match found:
        case "decimal":
            return f"decimal({type_.decimal.precision}, {type_.decimal.scale})"
        case "precision_timestamp" | "precision_timestamp_tz" | "precision_time":
            return f"{found}({getattr(type_, found).precision})"
    is_unsigned = found in _WIDTHS and getattr(type_, found).type_variation_reference
    return f"{found} (unsigned)" if is_unsigned else found or "no type"


def _name(type_: Type) -> str | None:
    """Return the name of a type in SQL."""
    found = kind(type_)
    if found in _INTEGERS:
        variation = getattr(type_, found).type_variation_reference
        if variation > _UNSIGNED:
            return None
        return _INTEGERS[found] + (" UNSIGNED" if variation else "")
    if found == "decimal":
        digits, scale = type_.decimal.precision, type_.decimal.scale
        is_valid = 0 < digits <= _MOST_DIGITS and 0 <= scale <= digits
        return f"DECIMAL({digits}, {scale})" if is_valid else None
    return _NAMED.get(found)


def _is_text(arrow: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(arrow) for test in tests)


def _is_bytes(arrow: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(test(arrow) for test in tests)


_TESTS: dict[str, Callable[[object], bool]] = {
    "bool": pa.types.is_boolean,
    "fp32": pa.types.is_float32,
    "fp64": pa.types.is_float64,
    "string": _is_text,
    "varchar": _is_text,
    "binary": _is_bytes,
    "fixed_binary": pa.types.is_fixed_size_binary,
    "date": pa.types.is_date,
}
