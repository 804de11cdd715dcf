"""The conditions that a search is sent.

A condition may match documents that do not pass a filter, and matches all that do: rows are
filtered again. The fields of lists are not searched, because each of their values would match.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from caraway_core.tables.scanners import ColumnFilter
from caraway_plugins.sources.opensearch.rules import FieldRule

types = pa.types
Condition = Mapping[str, Any]
ID = "_id"
_MOST_AMONG = 1_000
_ORDERS: Mapping[str, str] = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_AS_ISO: Condition = {"format": "strict_date_optional_time"}
_WIDER: Mapping[str, str] = {"<": "lte", "<=": "lte", ">": "gte", ">=": "gte"}


def conditions_of(
    schema: pa.Schema, rules: Sequence[FieldRule], filters: Sequence[ColumnFilter]
) -> list[Condition]:
    """Return conditions that all documents match which pass some filters."""
    by_column = {each.column: each for each in rules}
    found = []
    for each in filters:
        type_ = schema.field(each.column).type
        rule = by_column.get(each.column)
        if each.column == ID:
            condition = _ids(type_, each)
        else:
            condition = None if rule is None else _condition(rule, type_, each)
        if condition is not None:
            found.append(condition)
    return found


def _ids(type_: pa.DataType, each: ColumnFilter) -> Condition | None:
    if each.operator not in ("=", "in") or not types.is_string(type_):
        return None
    values = _values(each)
    return {"ids": {"values": values}} if 0 < len(values) <= _MOST_AMONG else None


def _condition(rule: FieldRule, type_: pa.DataType, each: ColumnFilter) -> Condition | None:
    if not _is_own(rule, type_):
        return None
    exists: Condition = {"exists": {"field": rule.field}}
    if each.operator == "is null":
        return None if rule.fills_nulls else _not(exists)
    if each.operator == "is not null":
        return None if rule.most_chars is not None or rule.kind == "ip" else exists
    values = _values(each)
    if not 0 < len(values) <= _MOST_AMONG:
        return None
    match rule.kind:
        case "keyword":
            return _text(rule, each.operator, values)
        case "integer":
            least = -(2 ** (rule.bits - 1))
            if all(least <= value < -least for value in values):
                return _compared(rule, each.operator, values)
        case "boolean" if each.operator not in _ORDERS:
            return _compared(rule, each.operator, values)
        case "ip" if each.operator in ("=", "in") and all(map(_is_address, values)):
            return _compared(rule, each.operator, values)
        case "date":
            return _between(rule, each.operator, [_millis(value) for value in values], _AS_ISO)
        case "double":
            return _between(rule, each.operator, [float(value) for value in values], {})
    return None


def _is_own(rule: FieldRule, type_: pa.DataType) -> bool:
    """Return whether a column has the values of the field: the manifest may declare others."""
    match rule.kind:
        case "keyword" | "ip":
            return bool(types.is_string(type_))
        case "integer":
            return bool(types.is_integer(type_))
        case "boolean":
            return bool(types.is_boolean(type_))
        case "date":
            return bool(types.is_timestamp(type_) or types.is_date(type_))
    return bool(types.is_decimal(type_))


def _text(rule: FieldRule, operator: str, values: Sequence[str]) -> Condition | None:
    if operator in ("=", "in"):
        chars = max(len(value.encode("utf-16-le")) // 2 for value in values)
        is_kept = rule.most_chars is None or chars <= rule.most_chars
        return _compared(rule, operator, values) if is_kept else None
    if rule.is_normalized:
        return None
    if operator in _ORDERS and rule.most_chars is not None:
        return _any(_compared(rule, operator, values), _not({"exists": {"field": rule.field}}))
    return _compared(rule, operator, values)


def _compared(rule: FieldRule, operator: str, values: Sequence[object]) -> Condition:
    if operator in _ORDERS:
        return {"range": {rule.field: {_ORDERS[operator]: values[0]}}}
    among: Condition = {"terms": {rule.field: list(values)}}
    return _not(among) if operator == "<>" else among


def _between(
    rule: FieldRule, operator: str, values: Sequence[Any], more: Condition
) -> Condition | None:
    """Return a condition for values that the index has less exactly than the documents."""
    if operator == "<>":
        return None
    if operator in _WIDER:
        return {"range": {rule.field: {_WIDER[operator]: values[0], **more}}}
    return {"range": {rule.field: {"gte": min(values), "lte": max(values), **more}}}


def _millis(value: date) -> str:
    """Return a moment as the index has it, without microseconds."""
    if not isinstance(value, datetime):
        return f"{value.isoformat()}T00:00:00.000Z"
    moment = value.astimezone(UTC) if value.tzinfo else value
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _values(each: ColumnFilter) -> list[Any]:
    return list(each.value) if each.operator == "in" else [each.value]


def _not(condition: Condition) -> Condition:
    return {"bool": {"must_not": [condition]}}


def _any(*conditions: Condition) -> Condition:
    return {"bool": {"should": list(conditions)}}
