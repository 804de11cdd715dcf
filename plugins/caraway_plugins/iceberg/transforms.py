"""Transforms of partitions: the value of a file's partition, from the columns of its rows.

Values are as Avro stores them: dates and moments are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caraway_plugins.iceberg.column_types import NoIcebergTypeError

_SIZED = re.compile(r"(bucket|truncate)\[(\d+)\]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = Context(prec=76)
_FIRST_YEAR = 1970
_MONTHS = 12
_MICROSECONDS_PER_HOUR = 3_600_000_000
_MICROSECONDS_PER_DAY = 24 * _MICROSECONDS_PER_HOUR
_MOST = 0x7FFFFFFF
Transform = Callable[[pa.Array], pa.Array]


def stored(values: pa.Array) -> pa.Array:
    """Return dates and moments as the numbers that Avro stores."""
    type_ = values.type
    if pa.types.is_date32(type_):
        return values.cast(pa.int32())
    if pa.types.is_timestamp(type_) or pa.types.is_time64(type_):
        return values.cast(pa.int64())
    return values


def physical(value: object) -> Any:
    """Return a value that was read from Avro as the number that it is stored as."""
    match value:
        case datetime():
            epoch = _EPOCH if value.tzinfo else _EPOCH.replace(tzinfo=None)
            return (value - epoch) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()).days
        case time():
            midnight = datetime.combine(_EPOCH.date(), value)
            return (midnight - _EPOCH.replace(tzinfo=None)) // timedelta(microseconds=1)
    return value


def transform(name: str) -> Transform:
    """Return what computes a transform.

    Raises:
        NoIcebergTypeError: it is not known here.
    """
    if name in _PLAIN:
        return _PLAIN[name]
    if sized := _SIZED.fullmatch(name):
        compute, size = _OF_SIZE[sized[1]], int(sized[2])
        return lambda values: compute(values, size)
    raise NoIcebergTypeError(f"its partitions are by '{name}'")


def result(name: str, kind: str) -> str:
    """Return the type of the values of a transform of a primitive type."""
    if name in ("year", "month", "hour") or name.startswith("bucket"):
        return "int"
    return "date" if name == "day" else kind


def _years(values: pa.Array) -> pa.Array:
    return pc.subtract(pc.year(values), _FIRST_YEAR).cast(pa.int32())


def _months(values: pa.Array) -> pa.Array:
    years = pc.multiply(pc.subtract(pc.year(values), _FIRST_YEAR), _MONTHS)
    return pc.subtract(pc.add(years, pc.month(values)), 1).cast(pa.int32())


def _days(values: pa.Array) -> pa.Array:
    numbers = stored(values)
    if pa.types.is_date32(values.type):
        return numbers
    return _divided(numbers, _MICROSECONDS_PER_DAY)


def _hours(values: pa.Array) -> pa.Array:
    return _divided(stored(values), _MICROSECONDS_PER_HOUR)


def _divided(numbers: pa.Array, by: int) -> pa.Array:
    """Divide, and round down, also below zero."""
    whole = np.floor_divide(numbers.fill_null(0).to_numpy(zero_copy_only=False), by)
    return pa.array(whole.astype(np.int32), mask=_nulls(numbers))


def _nulls(values: pa.Array) -> np.ndarray:
    return np.asarray(values.is_null())


def _truncated(values: pa.Array, width: int) -> pa.Array:
    type_ = values.type
    if pa.types.is_integer(type_):
        numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
        return pa.array(numbers - np.mod(numbers, width), type_, mask=_nulls(values))
    if pa.types.is_string(type_):
        return pc.utf8_slice_codeunits(values, 0, width)
    if pa.types.is_binary(type_):
        return pc.binary_slice(values, 0, width)
    assert pa.types.is_decimal(type_)
    cut = [each and _cut(each, type_.scale, width) for each in values.to_pylist()]
    return pa.array(cut, type_)


def _cut(value: Decimal, scale: int, width: int) -> Decimal:
    unscaled = int(value.scaleb(scale, _EXACT))
    return Decimal(unscaled - unscaled % width).scaleb(-scale, _EXACT)


def _buckets(values: pa.Array, count: int) -> pa.Array:
    numbers = stored(values)
    if pa.types.is_integer(numbers.type):
        hashes = _hashed_longs(numbers.cast(pa.int64()).fill_null(0).to_numpy())
    else:
        hashes = np.array([_hashed(_bytes(each)) for each in numbers.to_pylist()], np.uint32)
    buckets = (hashes & np.uint32(_MOST)).astype(np.int64) % count
    return pa.array(buckets.astype(np.int32), mask=_nulls(values))


def _bytes(value: object) -> bytes:
    match value:
        case None:
            return b""
        case str():
            return value.encode()
        case bytes():
            return value
    sign, digits, _exponent = value.as_tuple()  # type: ignore[attr-defined] # a decimal
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)


def _hashed_longs(numbers: np.ndarray) -> np.ndarray:
    """Return the Murmur3 hashes of numbers of eight bytes."""
    words = numbers.astype("<i8").view("<u4").reshape(-1, 2)
    with np.errstate(over="ignore"):
        hashes = np.zeros(len(numbers), np.uint32)
        for place in range(2):
            hashes = _mixed(hashes, words[:, place])
        return _ended(hashes, 8)


def _hashed(content: bytes) -> int:
    """Return the Murmur3 hash of bytes, of 32 bits and with the seed 0."""
    whole = len(content) // 4 * 4
    with np.errstate(over="ignore"):
        hashes = np.zeros(1, np.uint32)
        for word in np.frombuffer(content[:whole], "<u4"):
            hashes = _mixed(hashes, np.array([word], np.uint32))
        if rest := content[whole:]:
            hashes = hashes ^ _scrambled(np.array([int.from_bytes(rest, "little")], np.uint32))
        return int(_ended(hashes, len(content))[0])


def _mixed(hashes: np.ndarray, words: np.ndarray) -> np.ndarray:
    return _rotated(hashes ^ _scrambled(words), 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _scrambled(words: np.ndarray) -> np.ndarray:
    return _rotated(words * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)


def _rotated(words: np.ndarray, by: int) -> np.ndarray:
    return (words << np.uint32(by)) | (words >> np.uint32(32 - by))


def _ended(hashes: np.ndarray, length: int) -> np.ndarray:
    hashes = hashes ^ np.uint32(length)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.asarray(hashes ^ (hashes >> np.uint32(16)))


_PLAIN: dict[str, Transform] = {
    "identity": stored,
    "year": _years,
    "month": _months,
    "day": _days,
    "hour": _hours,
    "void": lambda values: pa.nulls(len(values), stored(values).type),
}
_OF_SIZE: dict[str, Callable[[pa.Array, int], pa.Array]] = {
    "bucket": _buckets,
    "truncate": _truncated,
}
