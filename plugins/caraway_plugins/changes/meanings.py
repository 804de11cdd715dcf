"""Semantic types of event values, which an event's schema adds to their JSON form.

Debezium writes a timestamp as a number and a decimal as bytes. Only the schema next to the event,
if there is one, gives the unit of the timestamp and the scale of the decimal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Meaning:
    """The semantic type of a value; `name` is for example `io.debezium.time.Date`."""

    name: str = ""
    scale: int | None = None
    items: "Meaning | None" = None
    fields: Mapping[str, "Meaning"] = field(default_factory=dict)

    def meaning_of(self, name: str) -> "Meaning":
        """Return the semantic type of a field, or `UNKNOWN`."""
        return self.fields.get(name, UNKNOWN)


UNKNOWN = Meaning()


def of_connect(schema: object) -> Meaning:
    """Read the schema of a value in Kafka Connect's format; malformed parts are ignored."""
    if not isinstance(schema, dict):
        return UNKNOWN
    parameters = schema.get("parameters")
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    fields = schema.get("fields")
    return Meaning(
        name=_text(schema.get("name")),
        scale=_scale(scale),
        items=of_connect(schema["items"]) if "items" in schema else None,
        fields={
            each["field"]: of_connect(each)
            for each in (fields if isinstance(fields, list) else ())
            if isinstance(each, dict) and isinstance(each.get("field"), str)
        },
    )


def of_avro(schema: object, named: dict[str, object] | None = None) -> Meaning:
    """Read the Avro schema of a value, which keeps Kafka Connect's type names.

    The schema must not be recursive. Decimals and Avro's logical types need no meaning, because
    fastavro already decodes them.
    """
    named = {} if named is None else named
    if isinstance(schema, str):
        return of_avro(named[schema], named) if schema in named else UNKNOWN
    if isinstance(schema, list):
        kinds = [of_avro(each, named) for each in schema if each != "null"]
        return kinds[0] if len(kinds) == 1 else UNKNOWN
    if not isinstance(schema, dict):
        return UNKNOWN
    if isinstance(schema.get("type"), dict | list):
        return of_avro(schema["type"], named)
    if isinstance(schema.get("name"), str):
        named[schema["name"]] = schema
        named[f"{schema.get('namespace', '')}.{schema['name']}"] = schema
    return Meaning(
        name=_text(schema.get("connect.name")),
        items=of_avro(schema["items"], named) if "items" in schema else None,
        fields={each["name"]: of_avro(each["type"], named) for each in schema.get("fields", ())},
    )


def _text(name: object) -> str:
    return name if isinstance(name, str) and len(name) <= _LONGEST_NAME else ""


def _scale(text: Any) -> int | None:
    try:
        return int(text)
    except (TypeError, ValueError):
        return None
