"""Names Arrow types as clients of the versioned JSON format expect them."""

import pyarrow as pa

_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}
_SIMPLE = {
    "null": "Null", "bool": "Boolean", "int8": "Int8", "int16": "Int16", "int32": "Int32",
    "int64": "Int64", "uint8": "UInt8", "uint16": "UInt16", "uint32": "UInt32",
    "uint64": "UInt64", "halffloat": "Float16", "float": "Float32", "double": "Float64",
    "string": "Utf8", "large_string": "LargeUtf8", "string_view": "Utf8View",
    "binary": "Binary", "large_binary": "LargeBinary", "binary_view": "BinaryView",
    "date32[day]": "Date32", "date64[ms]": "Date64",
    "month_day_nano_interval": "Interval(MonthDayNano)",
}  # fmt: skip


def display(type_: pa.DataType) -> str:
    """Return the name of a type, for example `Timestamp(Microsecond, Some("UTC"))`."""
    if name := _SIMPLE.get(str(type_)):
        return name
    if pa.types.is_timestamp(type_):
        zone = f'Some("{type_.tz}")' if type_.tz else "None"
        return f"Timestamp({_UNITS[type_.unit]}, {zone})"
    if pa.types.is_time(type_):
        return f"Time{type_.bit_width}({_UNITS[type_.unit]})"
    if pa.types.is_duration(type_):
        return f"Duration({_UNITS[type_.unit]})"
    if pa.types.is_decimal(type_):
        return f"Decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if pa.types.is_dictionary(type_):
        return f"Dictionary({display(type_.index_type)}, {display(type_.value_type)})"
    if pa.types.is_fixed_size_binary(type_):
        return f"FixedSizeBinary({type_.byte_width})"
    return _nested(type_)


def _nested(type_: pa.DataType) -> str:
    if pa.types.is_fixed_size_list(type_):
        return f"FixedSizeList({type_.list_size} x {display(type_.value_type)})"
    if pa.types.is_map(type_):
        return f"Map({display(type_.key_type)}, {display(type_.item_type)})"
    if pa.types.is_struct(type_):
        fields = ", ".join(f'"{field.name}": {display(field.type)}' for field in type_)
        return f"Struct({fields})"
    if pa.types.is_large_list(type_):
        return f"LargeList({display(type_.value_type)})"
    if pa.types.is_list(type_):
        return f"List({display(type_.value_type)})"
    return str(type_)
