"""Fields of older versions of Substrait that are still read where the newer ones are not set."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

FIELDS: Mapping[str, frozenset[int]] = {
    "AggregateRel.Grouping": frozenset({1}),
    "FetchRel": frozenset({3, 4}),
    "Plan": frozenset({1}),
    "extensions.SimpleExtensionDeclaration.ExtensionFunction": frozenset({1}),
}
"""Their numbers, by message: keys, offset and count, URIs of extensions, references to these."""


def values(message: Message, number: int) -> list[Any]:
    """Return what a message has of an older field: numbers, or bytes."""
    return [each.data for each in UnknownFieldSet(message) if each.field_number == number]


def number(message: Message, field: int) -> int | None:
    """Return the signed number that an older field holds, or None."""
    found = values(message, field)
    if not found or not isinstance(found[-1], int):
        return None
    value: int = found[-1]
    return value - (1 << 64) if value >> 63 else value
