"""Filters that MongoDB is sent.

A filter may match documents that do not pass, and matches all that do: rows are filtered again.
MongoDB compares values of one kind only, and an array by its elements.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from bson.objectid import ObjectId

from caraway_core.tables.scanners import ColumnFilter

types = pa.types
Condition = Mapping[str, Any]
_ORDERS: Mapping[str, str] = {"<": "$lt", "<=": "$lte", ">": "$gt", ">=": "$gte"}
_OBJECT_ID = re.compile("[0-9a-f]{24}")
_MOST_AMONG = 1_000
_INT_64 = range(-(2**63), 2**63)
_STRINGS: Condition = {"$type": "string"}


@dataclass(frozen=True, slots=True)
class MongoColumns:
    """The columns of a collection, those that take every type, and whether it has a collation."""

    schema: pa.Schema
    texts: frozenset[str]
    is_collated: bool = False


def filter_of(columns: MongoColumns, filters: Sequence[ColumnFilter]) -> Condition:
    """Return a filter that all documents match which pass some others."""
    conditions = [_condition(columns, each) for each in filters if is_plain(each.column)]
    sent = [each for each in conditions if each is not None]
    return {"$and": sent} if len(sent) > 1 else sent[0] if sent else {}


def projection_of(names: Sequence[str] | None) -> Mapping[str, int] | None:
    """Return a projection to some fields; None: whole documents are read."""
    if names is None or not all(map(is_plain, names)):
        return None
    return {"_id": 0} | dict.fromkeys(names, 1)


def is_plain(name: str) -> bool:
    """Return whether a name stands for a field, and for no path or operator."""
    return bool(name) and not name.startswith("$") and not {".", "\0"} & set(name)


def _condition(columns: MongoColumns, each: ColumnFilter) -> Condition | None:
    name, type_ = each.column, columns.schema.field(each.column).type
    if each.operator == "is null":
        return None
    if each.operator == "is not null":
        return {name: {"$exists": True}}  # `$ne: null` leaves out arrays with a null.
    values = list(each.value) if each.operator == "in" else [each.value]
    if not 0 < len(values) <= _MOST_AMONG:
        return None
    if types.is_string(type_) and not columns.is_collated:
        return _text(name, each.operator, values, is_mixed=name in columns.texts)
    if types.is_boolean(type_) and each.operator not in _ORDERS:
        return {name: _compared(each.operator, values)}
    if types.is_integer(type_) and all(value in _INT_64 for value in values):
        return {name: _compared(each.operator, values)}
    if types.is_timestamp(type_) and all(map(_has_millis, values)):
        moments = [value if value.tzinfo else value.replace(tzinfo=UTC) for value in values]
        return {"$or": [{name: _compared(each.operator, moments)}, {name: _STRINGS}]}
    return None


def _compared(operator: str, values: Sequence[object]) -> Condition:
    if operator in _ORDERS:
        return {_ORDERS[operator]: values[0]}
    return {"$nin" if operator == "<>" else "$in": list(values)}


def _text(name: str, operator: str, values: Sequence[str], *, is_mixed: bool) -> Condition | None:
    """Return a condition of texts, among which object ids may be."""
    ids = [ObjectId(value) for value in values if _OBJECT_ID.fullmatch(value)]
    if is_mixed and (operator not in ("=", "in") or any(map(_is_json, values))):
        return None  # Another value may be this text.
    if operator not in _ORDERS:
        return {name: _compared(operator, [*values, *ids])}
    other: Condition = _compared(operator, ids) if ids else {"$type": "objectId"}
    return {"$or": [{name: _compared(operator, values)}, {name: other}]}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def _has_millis(value: object) -> bool:
    return isinstance(value, datetime) and value.microsecond % 1_000 == 0
