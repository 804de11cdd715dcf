"""The JSON Schema of manifests, for editors: keys, types and allowed values."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from caraway_core.manifest.sections import Section
from caraway_core.manifest.shape.top import COMPONENTS, ManifestSection

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_READ = ("float", "int", "str", "tuple", "dict")
"""The types of values that may be written in other ways."""


@cache
def json_schema() -> dict[str, Any]:
    """Return the schema. It allows more than the checks do: it has no references and no rules."""
    models: dict[str, type[Section]] = {"": ManifestSection, **COMPONENTS}
    places, json_schema_value = TypeAdapter.json_schemas(
        [(key, "validation", TypeAdapter(model)) for key, model in models.items()],
        by_alias=True,
        schema_generator=_Generator,
    )
    shared: dict[str, Any] = json_schema_value["$defs"]
    top = shared.pop(ManifestSection.__name__)
    for key in COMPONENTS:
        top["properties"][key] = {"type": "array", "items": places[key, "validation"]}
    return {"$schema": _DIALECT, **top, "title": "Manifest of Caraway", "$defs": shared}


class _Generator(GenerateJsonSchema):
    """Leaves out types of values that are read from several: `10s` is a duration, a number too."""

    def function_before_schema(
        self, schema: core_schema.BeforeValidatorFunctionSchema
    ) -> JsonSchemaValue:
        if schema["schema"]["type"] in _READ:
            return {}
        return super().function_before_schema(schema)
