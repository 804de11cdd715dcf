"""Attributes of DynamoDB as values of Python, and values as attributes."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from caraway_plugins.sources.documents import numbers

Attribute = Mapping[str, Any]
"""A value as the API writes it: its type, and the value."""
Item = Mapping[str, Attribute]
_SHORT = 15
_MOST_DIGITS = 38
_EXPONENTS = range(-130, 126)


def values_of(item: Item) -> dict[str, Any]:
    """Return the values of an item by their names."""
    return {name: value_of(attribute) for name, attribute in item.items()}


def value_of(attribute: Attribute) -> object:
    """Return a value. Sets are sorted lists, as they have no order of their own."""
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            return _number(value)
        case "B":
            return bytes(value)
        case "NULL":
            return None
        case "M":
            return values_of(value)
        case "L":
            return [value_of(each) for each in value]
        case "SS":
            return sorted(value)
        case "NS":
            return sorted(map(_number, value))
        case "BS":
            return sorted(map(bytes, value))
    return value


def attribute_of(value: object) -> Attribute | None:
    """Return a value of a filter as an attribute; None: DynamoDB has no such value."""
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case bytes():
            return {"B": value}
        case int() | Decimal() if _is_storable(Decimal(value)):
            return {"N": format(Decimal(value), "f")}
    return None


def _number(text: str) -> int | numbers.ExactNumber:
    if len(text) <= _SHORT and text.removeprefix("-").isdecimal():
        return int(text)
    return numbers.exact(text)


def _is_storable(value: Decimal) -> bool:
    if not value.is_finite():
        return False
    digits = "".join(map(str, value.as_tuple().digits)).strip("0")
    return len(digits) <= _MOST_DIGITS and (not value or value.adjusted() in _EXPONENTS)
