"""The least value that a JSON schema of an OpenAPI description accepts."""

from collections.abc import Mapping
from typing import Any

_OF_TYPES: Mapping[str, Any] = {
    "string": "sample-1",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "null": None,
}
_OF_FORMATS = {"uuid": "00000000-0000-4000-8000-000000000000", "date-time": "2026-11-26T12:00:00Z"}


def sample(schema: Mapping[str, Any], document: Mapping[str, Any], name: str = "") -> Any:
    """Return a value of a schema: required fields only. Names say what patterns would."""
    while reference := schema.get("$ref"):
        schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    for key in ("const", "default", "example"):
        if schema.get(key) is not None:
            return schema[key]
    if values := schema.get("examples"):
        return values[0]
    if values := schema.get("enum"):
        return values[0]
    for key in ("anyOf", "oneOf", "allOf"):
        if choices := schema.get(key):
            return sample(choices[0], document, name)
    type_ = schema.get("type", "object")
    if type_ == "object":
        properties = schema.get("properties", {})
        return {
            each: sample(properties.get(each, {}), document, each)
            for each in schema.get("required", ())
        }
    if name == "roles":
        return ["member"]
    if type_ == "array" and schema.get("minItems"):
        return [sample(schema.get("items", {}), document, name)]
    if type_ == "string":
        if name in ("email", "to"):
            return "a@example.com"
        text = _OF_FORMATS.get(schema.get("format", ""), _OF_TYPES["string"])
        return "SAMPLE" if "secret" in name.lower() else text
    if type_ in ("integer", "number"):
        return schema.get("minimum", _OF_TYPES[type_])
    return _OF_TYPES[type_]
