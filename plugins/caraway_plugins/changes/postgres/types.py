"""Maps PostgreSQL types to Arrow types."""

import pyarrow as pa

_PLAIN = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "oid": pa.uint32(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
_LARGEST_PRECISION = 76


def arrow_type(name: str, modifier: int) -> pa.DataType:
    """Return the Arrow type of a non-array type; types that Arrow lacks become text."""
    if name == "numeric":
        return _decimal(modifier)
    return _PLAIN.get(name, pa.string())


def _decimal(modifier: int) -> pa.DataType:
    if modifier < 4:
        # numeric without precision: results of divisions fit; larger values are an error, not
        # rounded.
        return pa.decimal128(38, 20)
    precision = ((modifier - 4) >> 16) & 0xFFFF
    scale = (modifier - 4) & 0x7FF
    if scale > 1023 or scale > precision or precision > _LARGEST_PRECISION:
        return pa.string()
    width = pa.decimal128 if precision <= 38 else pa.decimal256
    return width(precision, scale)
