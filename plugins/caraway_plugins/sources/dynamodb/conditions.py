"""Requests for items: which filters DynamoDB is sent, and how they are written.

A request may return items that do not pass a filter, and returns all that do: rows are filtered
again. Names and values are never part of an expression; placeholders stand for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from caraway_core.tables.scanners import ColumnFilter
from caraway_plugins.sources.dynamodb import items
from caraway_plugins.sources.dynamodb.items import Attribute

types = pa.types
_MOST_CHARS = 4_000
"""An expression may have 4 KB."""
_MOST_AMONG = 100
_MOST_PROJECTED = 500
_MOST_BYTES = 100_000
_KEY_BYTES = {"HASH": 2_048, "RANGE": 1_024}
_ORDERS = frozenset({"<", "<=", ">", ">="})
_UNORDERED = frozenset({"B", "BOOL"})
_BOUNDS = _ORDERS | {"="}


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """An attribute of the key, and its type: `S`, `N` or `B`."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class ItemKey:
    """The key of a table."""

    partition: KeyAttribute
    sort: KeyAttribute | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its attributes."""
        return (self.partition.name, *([self.sort.name] if self.sort else []))


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """An index by another key. It has these attributes of the items that have its key; None: all.

    Items whose attributes have other types than those of the key are not in it, either.
    """

    name: str
    key: ItemKey
    attributes: frozenset[str] | None = None


@dataclass(slots=True)
class _Expression:
    """Placeholders of names and values."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Attribute] = field(default_factory=dict)

    def name(self, attribute: str) -> str:
        return self.names.setdefault(attribute, f"#n{len(self.names)}")

    def value(self, attribute: Attribute) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = attribute
        return placeholder


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """The columns of a table: their types, those that take every type, and the key."""

    schema: pa.Schema
    texts: frozenset[str]
    key: ItemKey


def request_of(
    columns: ItemColumns,
    filters: Sequence[ColumnFilter],
    names: Sequence[str] | None,
    limit: int | None,
    indexes: Sequence[SecondaryIndex] = (),
) -> tuple[str, Mapping[str, Any]] | None:
    """Return the operation, `query` or `scan`, and its arguments; None: no item can pass.

    `names` are the attributes that are read, None means all.
    """
    expression = _Expression()
    request: dict[str, Any] = {}
    of_table = columns.key.names
    if (index := _index(columns, filters, names, indexes)) is not None:
        request["IndexName"] = index.name
        columns = replace(columns, key=index.key)
    partition = _equality(columns, filters)
    if partition is not None:
        if not _is_key(partition, "HASH"):
            return None
        condition = f"{expression.name(columns.key.partition.name)} = {expression.value(partition)}"
        bounds = _sort_condition(columns, filters, expression)
        if bounds is None:
            return None
        request["KeyConditionExpression"] = condition + bounds
    # A query takes no filter of an attribute of the key.
    keys = () if partition is None else (*columns.key.names, *of_table)
    other = [each for each in filters if each.column not in keys]
    if written := _filter_expression(columns, other, expression):
        request["FilterExpression"] = written
    elif limit is not None and not other and all(each.operator in _BOUNDS for each in filters):
        request["Limit"] = max(limit, 1)
    # Without an attribute of the key, items that have none of the others may be left out.
    read = dict.fromkeys([*(names or ()), columns.key.partition.name])
    if names is not None and len(read) <= _MOST_PROJECTED:
        request["ProjectionExpression"] = ", ".join(map(expression.name, read))
    if expression.names:
        request["ExpressionAttributeNames"] = {at: name for name, at in expression.names.items()}
    if expression.values:
        request["ExpressionAttributeValues"] = expression.values
    return ("scan" if partition is None else "query"), request


def _index(
    columns: ItemColumns,
    filters: Sequence[ColumnFilter],
    names: Sequence[str] | None,
    indexes: Sequence[SecondaryIndex],
) -> SecondaryIndex | None:
    """Return an index that has all items that pass, with all attributes that are read.

    An index by the same partition key is better where only its sort key has bounds.
    """
    has_partition = _equality(columns, filters) is not None
    if has_partition and _sort_condition(columns, filters, _Expression()) != "":
        return None
    for each in indexes:
        if has_partition and each.key.partition != columns.key.partition:
            continue
        read = None if names is None else {*names, *(test.column for test in filters)}
        has_all = each.attributes is None or (read is not None and read <= each.attributes)
        if has_all and _has_every_item(replace(columns, key=each.key), filters):
            return each
    return None


def _has_every_item(columns: ItemColumns, filters: Sequence[ColumnFilter]) -> bool:
    """Return whether filters leave only items that have the key of an index."""
    for name in columns.key.names:
        # Other attributes are values of such columns, too.
        known = columns.schema.names
        if name not in known or name in columns.texts:
            return False
        if types.is_decimal(columns.schema.field(name).type):
            return False
    partition = _equality(columns, filters)
    if partition is None or not _is_key(partition, "HASH"):
        return False
    return columns.key.sort is None or _sort_condition(columns, filters, _Expression()) != ""


def _equality(columns: ItemColumns, filters: Sequence[ColumnFilter]) -> Attribute | None:
    """Return the value that the partition key is equal to, if it is."""
    for each in filters:
        if each.column == columns.key.partition.name and each.operator == "=":
            return _key_value(columns.schema, columns.key.partition, each.value)
    return None


def _key_value(schema: pa.Schema, key: KeyAttribute, value: object) -> Attribute | None:
    if _kind(schema.field(key.name).type) != key.kind:
        return None
    return items.attribute_of(value)


def _is_key(attribute: Attribute, role: str) -> bool:
    ((kind, value),) = attribute.items()
    size = len(value.encode() if isinstance(value, str) else value)
    return kind == "N" or 0 < size <= _KEY_BYTES[role]


def _sort_condition(
    columns: ItemColumns, filters: Sequence[ColumnFilter], expression: _Expression
) -> str | None:
    """Return the condition of the sort key, which may be empty; None: no item can pass.

    There can be one only, so bounds become `>=`, `<=` or BETWEEN.
    """
    sort = columns.key.sort
    if sort is None:
        return ""
    low: Any = None
    high: Any = None
    for each in filters:
        if each.column != sort.name or each.operator not in _BOUNDS:
            continue
        attribute = _key_value(columns.schema, sort, each.value)
        if attribute is None or not _is_key(attribute, "RANGE"):
            continue
        if each.operator in ("=", ">", ">="):
            low = each.value if low is None else max(low, each.value)
        if each.operator in ("=", "<", "<="):
            high = each.value if high is None else min(high, each.value)
    if low is None and high is None:
        return ""
    name = expression.name(sort.name)
    if low is None or high is None:
        operator, bound = ("<=", high) if low is None else (">=", low)
        return f" AND {name} {operator} {expression.value(_sure(bound))}"
    if low > high:
        return None
    first, last = expression.value(_sure(low)), expression.value(_sure(high))
    return f" AND {name} BETWEEN {first} AND {last}"


def _sure(value: object) -> Attribute:
    attribute = items.attribute_of(value)
    assert attribute is not None
    return attribute


def _filter_expression(
    columns: ItemColumns, filters: Sequence[ColumnFilter], expression: _Expression
) -> str:
    parts: list[str] = []
    for each in filters:
        names, values = dict(expression.names), dict(expression.values)
        part = _condition(columns, each, expression)
        if part is not None and len(" AND ".join([*parts, part])) <= _MOST_CHARS:
            parts.append(part)
        else:
            # Placeholders that nothing uses are an error.
            expression.names, expression.values = names, values
    return " AND ".join(parts)


def _condition(columns: ItemColumns, each: ColumnFilter, expression: _Expression) -> str | None:
    """Return a condition that all items meet which pass a filter; None: there is none."""
    if each.operator in ("is null", "is not null"):
        name, null = expression.name(each.column), expression.value({"S": "NULL"})
        if each.operator == "is null":
            return f"(attribute_not_exists({name}) OR attribute_type({name}, {null}))"
        return f"(attribute_exists({name}) AND NOT attribute_type({name}, {null}))"
    type_ = columns.schema.field(each.column).type
    kind = _kind(type_)
    many = each.value if each.operator == "in" else (each.value,)
    attributes = [items.attribute_of(value) for value in many]
    if not 0 < len(attributes) <= _MOST_AMONG or (kind in _UNORDERED and each.operator in _ORDERS):
        return None
    values = [attribute for attribute in attributes if attribute and kind in attribute]
    if len(values) < len(attributes) or sum(len(repr(value)) for value in values) > _MOST_BYTES:
        return None
    name = expression.name(each.column)
    placeholders = [expression.value(value) for value in values]
    if each.operator == "in":
        compared = f"{name} IN ({', '.join(placeholders)})"
    else:
        compared = f"{name} {each.operator} {placeholders[0]}"
    if each.column in columns.key.names:
        return compared
    # Values of other types that become values of the column, too.
    text = {"S": "S"}
    if each.column in columns.texts:
        return f"(NOT attribute_type({name}, {expression.value(text)}) OR {compared})"
    if types.is_decimal(type_):
        return f"(attribute_type({name}, {expression.value(text)}) OR {compared})"
    return compared


def _kind(type_: pa.DataType) -> str:
    """Return the type of the attributes that are compared as values of a column, or no text."""
    tests = (
        (types.is_string, "S"),
        (types.is_integer, "N"),
        (types.is_decimal, "N"),
        (types.is_binary, "B"),
        (types.is_boolean, "BOOL"),
    )
    return next((kind for test, kind in tests if test(type_)), "")
