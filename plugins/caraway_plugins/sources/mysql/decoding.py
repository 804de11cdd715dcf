"""Rows of the text protocol of MySQL as Arrow columns, without a Python object for each value."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caraway_plugins.sources.decimal_texts import decimals

types = pa.types
_NULL = 0xFB
_LONG = {0xFC: 2, 0xFD: 3, 0xFE: 8}
"""The first byte of a long length, and how many bytes of it follow; others are the byte itself."""


def columns(packets: Sequence[bytes], count: int) -> list[pa.Array]:
    """Return the values of rows as binary columns.

    Raises:
        ValueError: the rows have another number of columns.
    """
    joined = np.frombuffer(b"".join(packets) + bytes(8), np.uint8)
    sizes = np.fromiter(map(len, packets), np.int64, len(packets))
    ends = np.cumsum(sizes)
    places = ends - sizes
    made = []
    for _ in range(count):
        column, places = _column(joined, places)
        made.append(column)
    if not np.array_equal(places, ends):
        raise ValueError("rows of another shape")
    return made


def _column(joined: np.ndarray, places: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    first = joined[places]
    sizes, heads = first.astype(np.int64), np.ones(len(places), np.int64)
    for mark, width in _LONG.items():
        array1_d = np.flatnonzero(first == mark)
        if len(array1_d):
            parts = joined[places[array1_d, None] + 1 + np.arange(width)].astype(np.int64)
            sizes[array1_d] = parts @ (1 << 8 * np.arange(width, dtype=np.int64))
            heads[array1_d] += width
    is_null = first == _NULL
    sizes[is_null] = 0
    starts = places + heads
    offsets = np.zeros(len(places) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    taken = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    buffers = [
        pa.py_buffer(np.packbits(~is_null, bitorder="little")),
        pa.py_buffer(offsets),
        pa.py_buffer(joined[taken]),
    ]
    column = pa.Array.from_buffers(pa.large_binary(), len(places), buffers)
    return column, starts + sizes


def typed(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return a binary column as one of a type.

    Raises:
        pa.ArrowException: a value is none of the type.
    """
    if types.is_binary(type_):
        return pc.cast(column, type_)
    text = pc.cast(column, pa.string())
    text.validate(full=True)
    return next((made(text, type_) for test, made in _FORMS.items() if test(type_)), _cast)


def _cast(text: pa.Array, type_: pa.DataType) -> pa.Array:
    return pc.cast(text, type_)


def _boolean(text: pa.Array, type_: pa.DataType) -> pa.Array:
    numbers = pc.cast(text, pa.int8())
    if pc.any(pc.invert(pc.is_in(numbers.drop_null(), pa.array([0, 1], pa.int8())))).as_py():
        raise pa.ArrowInvalid("a number that is neither 0 nor 1")
    return pc.cast(numbers, type_)


def _moment(text: pa.Array, type_: pa.DataType) -> pa.Array:
    """The session is in UTC."""
    return pc.cast(pc.cast(text, pa.timestamp(type_.unit)), type_)


_FORMS: dict[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]] = {
    types.is_boolean: _boolean,
    types.is_decimal: decimals,
    types.is_timestamp: _moment,
    lambda _type: True: _cast,
}
