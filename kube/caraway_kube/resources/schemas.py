"""Converts the schemas of pydantic models to structural schemas for CRDs.

The API server requires: every value has a type; no `$ref`, `anyOf` or `title`; no object with both
`properties` and `additionalProperties`. It validates defaults, with CEL, before it fills in nested
defaults. So the default of a section is `{}`, and rules check with `has()` first.
"""

from typing import Any

from pydantic import BaseModel

_DROPPED = ("title", "$defs", "discriminator", "const")
_TEXT_LENGTH = 65536


def structural(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a model."""
    written = model.model_json_schema(by_alias=True)
    return _Inlining(written.get("$defs", {})).schema(written)


class _Inlining:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions

    def schema(self, written: dict[str, Any]) -> dict[str, Any]:
        found = {key: value for key, value in written.items() if key not in _DROPPED}
        if "const" in written:
            found["enum"] = [written["const"]]
        found = self._without_alternatives(found)
        if "properties" in found:
            return self._object(found)
        if isinstance(found.get("additionalProperties"), dict):
            found["additionalProperties"] = self.schema(found["additionalProperties"])
        elif "additionalProperties" in found:
            del found["additionalProperties"]
        if "items" in found:
            found["items"] = self.schema(found["items"])
        if found.get("type") == "array" and found.get("default") == []:
            del found["default"]
        if found.get("type") == "string" and not {"enum", "maxLength"} & found.keys():
            found["maxLength"] = _TEXT_LENGTH
        return found

    def _without_alternatives(self, found: dict[str, Any]) -> dict[str, Any]:
        """Resolve references and `X | None`. For the API server, a missing key is None."""
        if (reference := found.pop("$ref", None)) is not None:
            target = self._definitions[reference.rpartition("/")[2]]
            # Keys next to the reference, such as a description, override those of the target.
            return self._without_alternatives({**_kept(target), **found})
        for word in ("allOf", "anyOf"):
            branches = [each for each in found.pop(word, []) if each != {"type": "null"}]
            if len(branches) > 1:
                raise ValueError(f"a structural schema cannot have these alternatives: {branches}")
            if branches:
                if found.get("default", ...) is None:
                    del found["default"]
                return self._without_alternatives({**_kept(branches[0]), **found})
        return found

    def _object(self, found: dict[str, Any]) -> dict[str, Any]:
        found.pop("additionalProperties", None)
        found["properties"] = {
            name: self.schema(value) for name, value in found["properties"].items()
        }
        if "default" in found:
            found["default"] = {}
        return found


def _kept(schema: dict[str, Any]) -> dict[str, object]:
    return {key: value for key, value in schema.items() if key not in _DROPPED or key == "const"}
