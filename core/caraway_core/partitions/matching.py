"""Prunes partitions by a filter, and finds datasets that can be joined in place."""

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from caraway_core.partitions import hashing, naming
from caraway_core.partitions.keys import BucketKey, ByExpression, PartitionBy, Term
from caraway_core.partitions.naming import Value, Values


@dataclass(frozen=True, slots=True)
class Fact:
    """A filter condition: the column equals one of the values. All facts hold together."""

    column: str
    values: tuple[Any, ...]


def matching(
    by: PartitionBy, keys: Sequence[Values], facts: Sequence[Fact], schema: pa.Schema
) -> list[Values]:
    """Return the partitions, in their order, that may hold rows of which all facts are true.

    `keys` hold the values of partitions as they stand in their names, see `naming`. A fact that is
    not understood, as one whose values are of another type than its column, rules nothing out.
    """
    allowed = [_allowed(term, facts, schema) for term in by.terms]
    return [key for key in keys if all(map(_may_be, key, allowed))]


def colocation(by: PartitionBy, schema: pa.Schema) -> str | None:
    """Return the name of the dataset's colocation group, or None if it is in none.

    Datasets of one group have the same keys in buckets of the same number. Partitions placed under
    the group's name are on the same executor, so joins on the bucket columns move no rows.
    """
    match by.terms:
        case (BucketKey(count, column),) if count > 1 and column in schema.names:
            return f"bucket({count}) of {hashing.family(schema.field(column).type)}"
    return None


def _may_be(value: Value, allowed: frozenset[Value] | None) -> bool:
    return allowed is None or value in allowed


def _allowed(term: Term, facts: Sequence[Fact], schema: pa.Schema) -> frozenset[Value] | None:
    """Return the only values that the term can have given the facts; None for any."""
    if isinstance(term, ByExpression) or term.column not in schema.names:
        return None
    type_ = schema.field(term.column).type
    sets = [_understood(fact.values, type_) for fact in facts if fact.column == term.column]
    known = [values for values in sets if values is not None]
    if not known:
        return None
    if isinstance(term, BucketKey):
        known = [hashing.bucket_of(values, term.count) for values in known]
    return frozenset.intersection(*(frozenset(naming.plain_values(values)) for values in known))


def _understood(values: Sequence[object], type_: pa.DataType) -> pa.Array | None:
    """Convert literals to a column's type, without NULL, which equals nothing."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    literals = [value for value in values if value is not None]
    if not all(_fits(value, type_) for value in literals):
        return None
    try:
        return pa.array(literals, type_)
    except (pa.ArrowException, ValueError, OverflowError):
        return None


def _fits(value: object, type_: pa.DataType) -> bool:
    """Return whether SQL compares the literal with the column without casting the column."""
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
