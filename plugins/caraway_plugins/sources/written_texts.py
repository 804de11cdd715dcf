"""Values of rows that are inserted into databases, as texts that their SQL takes."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import InvalidQueryError

types = pa.types
Binary = Callable[[bytes], str]
Refused = Callable[[str], InvalidQueryError]
"""Makes an error of what is wrong with values."""


def of(array: pa.Array, binary: Binary, zone: str = "") -> pa.Array:
    """Return values as texts; moments are those of UTC, with the suffix `zone`."""
    type_ = array.type
    if types.is_binary(type_):
        made = [None if each is None else binary(each) for each in array.to_pylist()]
        return pa.array(made, pa.string())
    if types.is_timestamp(type_) and type_.tz is not None:
        moments = pc.cast(pc.cast(array, pa.timestamp(type_.unit, "UTC")), pa.int64())
        texts = pc.cast(pc.cast(moments, pa.timestamp(type_.unit)), pa.string())
        return pc.binary_join_element_wise(texts, zone, "") if zone else texts
    return pc.cast(array, pa.string())


def check(columns: pa.Schema, refused: Refused) -> None:
    """Refuse columns that have no text.

    Raises:
        InvalidQueryError: one is a list, a struct or a map.
    """
    for each in columns:
        if types.is_nested(each.type):
            raise refused(f"column '{each.name}' is a list, which cannot be written")


def check_numbers(batch: pa.RecordBatch, refused: Refused, *, has_infinity: bool) -> None:
    """Refuse numbers that a database lacks.

    Raises:
        InvalidQueryError: one is NaN, or infinite.
    """
    for array, field in zip(batch.columns, batch.schema, strict=True):
        if types.is_floating(field.type):
            lacking = pc.is_nan(array) if has_infinity else pc.invert(pc.is_finite(array))
            if pc.any(lacking).as_py():
                kinds = "NaN" if has_infinity else "NaN or an infinite number"
                raise refused(f"column '{field.name}' has {kinds}, which it cannot keep")
