"""Infinite dates and moments of databases, which Arrow has no values for."""

import pyarrow as pa
import pyarrow.compute as pc

_EPOCH_US = 946_684_800_000_000
_EPOCH_DAYS = 10_957
"""PostgreSQL's driver counts from the year 2000, and adds this to the least number."""


def has_endless(values: pa.Array) -> bool:
    """Return whether a date or moment is infinite: drivers send the ends of the numbers."""
    type_ = values.type
    if pa.types.is_timestamp(type_):
        numbers, most, added = values.view(pa.int64()), 2**63 - 1, _EPOCH_US
    elif pa.types.is_date32(type_):
        numbers, most, added = values.view(pa.int32()), 2**31 - 1, _EPOCH_DAYS
    else:
        return False
    if values.null_count == len(values):
        return False
    ends = pc.min_max(numbers)
    return bool(ends["max"].as_py() == most or ends["min"].as_py() <= added - most - 1)
