"""Decimals that databases send as text."""

import pyarrow as pa
import pyarrow.compute as pc

_MOST_DIGITS = 76
_LONGEST = _MOST_DIGITS + 2
"""With a sign and a point."""


def decimals(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return texts as decimals of a type.

    pyarrow 26 drops digits of a number that has too many for 128 bits, so it gets 256 first.

    Raises:
        pa.ArrowException: a text is no number of the type.
    """
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    if longest > _LONGEST:
        raise pa.ArrowInvalid(f"a number of {longest} characters")
    if not pa.types.is_decimal128(type_):
        return pc.cast(texts, type_)
    return pc.cast(pc.cast(texts, pa.decimal256(_MOST_DIGITS, type_.scale)), type_)
