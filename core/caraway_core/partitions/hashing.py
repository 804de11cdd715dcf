"""Which bucket a value falls in: the same in every process, on every host, in every release.

The hash, version 1. Files on disk are cut by it, so it never changes: a new one gets a new name.

- A value becomes one unsigned 64-bit word. Integers of all widths: sign-extended to 64 bits.
  Booleans: 0 or 1. Floats: the bits of the double, with one NaN and no negative zero. Dates: days.
  Times, timestamps and durations: microseconds. Texts and binaries: the bytes as a polynomial,
  the sum of (byte + 1) * R**position modulo 2**64. Decimals: the unscaled value, word by word.
- The word is mixed by splitmix64, and of its upper 32 bits h the bucket is (h * n) >> 32.
  So buckets nest: bucket b of n is made of the buckets 2b and 2b + 1 of 2n.
- NULL is in bucket 0.

All of it is done by Arrow's kernels, on slices that stay in the processor's cache.
"""

import functools
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_ROWS = 1 << 16
_BYTES = 1 << 18
_WORD = 1 << 64
_GOLDEN = 0x9E3779B97F4A7C15
_RADIX = 0xD1342543DE82EF95
_MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def bucket_of(values: pa.Array | pa.ChunkedArray, count: int) -> pa.Array:
    """Return the bucket of each value, 0 to `count` - 1, as int32 without NULL.

    Raises:
        ValueError: values of this type cannot be put in buckets.
    """
    family(values.type)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    pieces = [_bucket(piece, count) for chunk in chunks for piece in _pieces(chunk)]
    return pa.concat_arrays(pieces) if pieces else pa.array([], pa.int32())


def hash64(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the 64-bit hash of each value; the hash of NULL is unspecified.

    Raises:
        ValueError: values of this type have none.
    """
    family(values.type)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    hashes = [_mixed(_words(piece)) for chunk in chunks for piece in _pieces(chunk)]
    return pa.concat_arrays(hashes) if hashes else pa.array([], pa.uint64())


def hash64_of(value: int | str | bytes) -> int:
    """Return the 64-bit hash of one value, as `hash64` does for arrays; bools count as integers."""
    if isinstance(value, int):
        word = value % _WORD
    else:
        octets = value.encode() if isinstance(value, str) else value
        word = 0
        for octet in reversed(octets):
            word = (word * _RADIX + octet + 1) % _WORD
    mixed = (word + _GOLDEN) % _WORD
    for shift, factor in _MIXING:
        mixed = (mixed ^ (mixed >> shift)) * factor % _WORD
    return mixed ^ (mixed >> 31)


def bucket_of_hash(hash_: int, count: int) -> int:
    """Return the bucket of a non-NULL value from its hash."""
    return ((hash_ >> 32) * count) >> 32


def joined64(columns: Sequence[pa.Array]) -> pa.Array:
    """Return one hash per row over several columns; for one column, the hash of its values."""
    first, *others = map(hash64, columns)
    return functools.reduce(
        lambda some, more: _mixed(pc.bit_wise_xor(_mixed(some), more)), others, first
    )


def family(type_: pa.DataType) -> str:
    """Return the type family; equal values of types in one family hash to the same bucket.

    Raises:
        ValueError: values of this type cannot be put in buckets.
    """
    types = pa.types
    if types.is_dictionary(type_):
        return family(type_.value_type)
    if types.is_decimal(type_):
        width = 256 if type_.precision > 38 else 128
        return f"decimal{width}({type_.scale})"
    if types.is_timestamp(type_):
        return "timestamp" if type_.tz is None else "timestamptz"
    for name, tests in _FAMILIES.items():
        if any(test(type_) for test in tests):
            return name
    raise ValueError(f"values of type {type_} cannot be put in buckets; choose another column")


_FAMILIES: dict[str, tuple[Callable[[pa.DataType], bool], ...]] = {
    "integer": (pa.types.is_integer,),
    "boolean": (pa.types.is_boolean,),
    "float": (pa.types.is_floating,),
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "binary": (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
        pa.types.is_fixed_size_binary,
    ),
    "date": (pa.types.is_date,),
    "time": (pa.types.is_time,),
    "duration": (pa.types.is_duration,),
    "null": (pa.types.is_null,),
}


def _pieces(chunk: pa.Array) -> Iterator[pa.Array]:
    """Cut a chunk into pieces small enough for the processor's cache."""
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    is_bytes = family(chunk.type) in ("text", "binary")
    for start in range(0, len(chunk), _ROWS):
        piece = chunk.slice(start, _ROWS)
        yield from _small(piece.cast(pa.large_binary())) if is_bytes else (piece,)


def _small(piece: pa.Array) -> Iterator[pa.Array]:
    start, end = _ends(piece)
    if end - start <= _BYTES or len(piece) == 1:
        yield piece
    else:
        half = len(piece) // 2
        yield from _small(piece.slice(0, half))
        yield from _small(piece.slice(half))


def _bucket(piece: pa.Array, count: int) -> pa.Array:
    mixed = _mixed(_words(piece))
    bucket = pc.shift_right(pc.multiply(pc.shift_right(mixed, _word(32)), _word(count)), _word(32))
    bucket = bucket.cast(pa.int32())
    return pc.if_else(piece.is_valid(), bucket, pa.scalar(0, pa.int32()))


def _words(piece: pa.Array) -> pa.Array:
    kind = family(piece.type).partition("(")[0]
    match kind:
        case "integer":
            wide = pa.uint64() if pa.types.is_unsigned_integer(piece.type) else pa.int64()
            return piece.cast(wide).view(pa.uint64())
        case "boolean" | "null":
            return piece.cast(pa.uint64())
        case "float":
            return _float_words(piece)
        case "text" | "binary":
            return _byte_words(piece)
        case "decimal128" | "decimal256":
            return _decimal_words(piece, kind)
    return _time_words(piece)


def _float_words(piece: pa.Array) -> pa.Array:
    # Adding zero turns the negative zero into the positive one.
    doubles = pc.add(piece.cast(pa.float64()), pa.scalar(0.0))
    is_number = pc.invert(pc.is_nan(doubles))
    return pc.if_else(is_number, doubles.view(pa.uint64()), _word(0x7FF8 << 48))


def _time_words(piece: pa.Array) -> pa.Array:
    type_ = piece.type
    if pa.types.is_date32(type_):
        return piece.cast(pa.int32()).cast(pa.int64()).view(pa.uint64())
    number = piece.cast(pa.int32() if type_.bit_width == 32 else pa.int64()).cast(pa.int64())
    if pa.types.is_date64(type_):
        number = pc.divide(number, pa.scalar(86_400_000))
    elif type_.unit == "ns":
        number = pc.divide(number, pa.scalar(1_000))
    else:
        number = pc.multiply(number, pa.scalar(_MICROSECONDS[type_.unit]))
    return number.view(pa.uint64())


def _decimal_words(piece: pa.Array, kind: str) -> pa.Array:
    scale = piece.type.scale
    if kind == "decimal128":
        piece = piece.cast(pa.decimal128(38, scale))
    width = piece.type.bit_width // 64
    flat = pa.Array.from_buffers(
        pa.uint64(), width * len(piece), [None, piece.buffers()[1]], offset=width * piece.offset
    )
    words = [flat.take(pa.arange(first, len(flat), width)) for first in range(width)]
    return functools.reduce(lambda low, high: pc.bit_wise_xor(_mixed(low), high), words)


def _byte_words(piece: pa.Array) -> pa.Array:
    start, end = _ends(piece)
    _, offsets_buffer, content = piece.buffers()
    if end == start:
        return pa.repeat(_word(0), len(piece))
    if end - start > _BYTES:
        return pa.array([_long_word(content, start, end)], pa.uint64())
    offsets = pc.subtract(_offsets(offsets_buffer, piece), pa.scalar(start))
    octets = pa.Array.from_buffers(pa.uint8(), end - start, [None, content], offset=start)
    sums = pa.concat_arrays([pa.array([0], pa.uint64()), pc.cumulative_sum(_spread(octets))])
    before, after = offsets.slice(0, len(piece)), offsets.slice(1)
    total = pc.subtract(sums.take(after), sums.take(before))
    # What stands at position p of the slice was multiplied by R**p: bring it to its own start.
    return pc.multiply(total, _powers(pow(_RADIX, -1, _WORD)).take(before))


def _spread(octets: pa.Array) -> pa.Array:
    return pc.multiply(
        pc.add(octets.cast(pa.uint64()), _word(1)), _powers(_RADIX).slice(0, len(octets))
    )


def _long_word(content: pa.Buffer, start: int, end: int) -> int:
    """Hash one long value in stretches, because the table of powers would not cover it."""
    word, stretch_power = 0, pow(_RADIX, _BYTES, _WORD)
    for first in reversed(range(start, end, _BYTES)):
        size = min(_BYTES, end - first)
        octets = pa.Array.from_buffers(pa.uint8(), size, [None, content], offset=first)
        word = (word * stretch_power + pc.cumulative_sum(_spread(octets))[-1].as_py()) % _WORD
    return word


@functools.cache
def _powers(base: int) -> pa.Array:
    """Return base**0, base**1 and so on, as many as a slice has bytes and one more."""
    factors = pa.concat_arrays(
        [pa.array([1], pa.uint64()), pa.repeat(pa.scalar(base, pa.uint64()), _BYTES)]
    )
    return pc.cumulative_prod(factors)


def _offsets(buffer: pa.Buffer, piece: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(piece) + 1, [None, buffer], offset=piece.offset)


def _ends(piece: pa.Array) -> tuple[int, int]:
    """Return where the bytes of a piece begin and end in its buffer."""
    if len(piece) == 0:
        return 0, 0
    offsets = _offsets(piece.buffers()[1], piece)
    return offsets[0].as_py(), offsets[-1].as_py()


def _mixed(words: pa.Array) -> pa.Array:
    mixed = pc.add(words, _word(_GOLDEN))
    for shift, factor in _MIXING:
        mixed = pc.bit_wise_xor(mixed, pc.shift_right(mixed, _word(shift)))
        mixed = pc.multiply(mixed, _word(factor))
    return pc.bit_wise_xor(mixed, pc.shift_right(mixed, _word(31)))


@functools.cache
def _word(value: int) -> object:
    return pa.scalar(value, pa.uint64())
