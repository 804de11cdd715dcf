"""How many partitions a dataset gets, which of them a filter can match, and which may be joined."""

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_core.partitions import hashing
from caraway_core.partitions.keys import (
    Bucket,
    ByColumn,
    ByExpression,
    PartitionBy,
    PartitionId,
    Term,
    parse,
)

__all__ = [
    "Bucket",
    "ByColumn",
    "ByExpression",
    "Fact",
    "PartitionBy",
    "PartitionId",
    "Term",
    "colocation",
    "default_buckets",
    "matching",
    "parse",
]

BYTES_A_BUCKET = 128 * 1024 * 1024
ROWS_A_BUCKET = 2_000_000
SMALL_BYTES = 16 * 1024 * 1024
SMALL_ROWS = 100_000
MAX_DEFAULT_BUCKETS = 1024

Key = tuple[Any, ...]
"""The values of a partition, one for each term: the number of a bucket, or what a column holds."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a filter says of a column: it equals one of the values. Facts hold all at once."""

    column: str
    values: tuple[Any, ...]


def default_buckets(size_bytes: int, rows: int, cores: int) -> int:
    """Choose a number of buckets, a power of two so that buckets of datasets nest.

    It is chosen once, as a dataset is first loaded, and kept: another number moves every row.
    `cores` are those of all executors together.
    """
    if size_bytes <= SMALL_BYTES and rows <= SMALL_ROWS:
        return 1
    by_size = max(-(-size_bytes // BYTES_A_BUCKET), -(-rows // ROWS_A_BUCKET))
    # A bucket for each core, unless that would cut a medium table to crumbs.
    by_cores = min(cores, max(-(-size_bytes // SMALL_BYTES), -(-rows // SMALL_ROWS)))
    wanted = max(by_size, by_cores, 1)
    return int(min(1 << (wanted - 1).bit_length(), MAX_DEFAULT_BUCKETS))


def matching(
    by: PartitionBy, keys: Sequence[Key], facts: Sequence[Fact], schema: pa.Schema
) -> list[Key]:
    """Return the partitions, in their order, that may hold rows of which all facts are true.

    A fact that is not understood, as one whose values are of another type than its column, rules
    nothing out.
    """
    allowed = [_allowed(term, facts, schema) for term in by.terms]
    return [key for key in keys if all(map(_may_be, key, allowed))]


def colocation(by: PartitionBy, schema: pa.Schema) -> str | None:
    """Name the group of datasets whose buckets of one number hold the same keys, if in one.

    Partitions of a group that are placed under its name are on the same executor, and datasets in
    it are joined on their bucket columns without moving rows.
    """
    match by.terms:
        case (Bucket(count, column),) if count > 1 and column in schema.names:
            return f"bucket({count}) of {hashing.family(schema.field(column).type)}"
    return None


def _may_be(value: Any, allowed: frozenset[Any] | None) -> bool:
    return allowed is None or value in allowed


def _allowed(term: Term, facts: Sequence[Fact], schema: pa.Schema) -> frozenset[Any] | None:
    """Return the only values that the term can have where the facts are true, None for any."""
    if isinstance(term, ByExpression) or term.column not in schema.names:
        return None
    type_ = schema.field(term.column).type
    sets = [_understood(fact.values, type_) for fact in facts if fact.column == term.column]
    known = [values for values in sets if values is not None]
    if not known:
        return None
    if isinstance(term, Bucket):
        known = [hashing.bucket_of(values, term.count) for values in known]
    return frozenset.intersection(*(frozenset(values.to_pylist()) for values in known))


def _understood(values: Sequence[Any], type_: pa.DataType) -> pa.Array | None:
    """Return literals as values of a column's type, without NULL, which equals nothing."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    literals = [value for value in values if value is not None]
    if not all(_fits(value, type_) for value in literals):
        return None
    try:
        return pa.array(literals, type_)
    except (pa.ArrowException, ValueError, OverflowError):
        return None


def _fits(value: Any, type_: pa.DataType) -> bool:
    """Whether SQL compares the literal with the column without changing the column's type."""
    try:
        kind = hashing.family(type_).partition("(")[0]
    except ValueError:
        return False
    if kind == "float" and isinstance(value, float):
        return pa.types.is_float64(type_) and value == value and value != 0
    if kind == "timestamp" and isinstance(value, dt.datetime):
        return value.tzinfo is None
    if kind == "timestamptz" and isinstance(value, dt.datetime):
        return value.tzinfo is not None
    return type(value) in _LITERALS.get(kind, ())


_LITERALS: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "boolean": (bool,),
    "text": (str,),
    "binary": (bytes,),
    "decimal128": (decimal.Decimal,),
    "decimal256": (decimal.Decimal,),
    "date": (dt.date,),
}
