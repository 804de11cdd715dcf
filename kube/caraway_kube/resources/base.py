"""The base class of all sections, and the types of their fields."""

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from caraway_kube.resources import quantities

Rule = dict[str, str]
"""A CEL rule with the keys `rule`, `message` and, optionally, `fieldPath`."""


class SpecSection(BaseModel):
    """A mapping with known keys in camelCase.

    Unknown keys are dropped, as the API server drops them. An object that an older or newer version
    of the CRD accepted must not stop the operator.
    """

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        populate_by_name=True,
        alias_generator=to_camel,
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, content: object) -> object:
        """Drop keys without a value, as the API server does."""
        if not isinstance(content, dict):
            return content
        return {key: value for key, value in content.items() if value is not None}


def rules(*found: Rule) -> dict[str, Any]:
    """Return the `json_schema_extra` of a model with these CEL rules."""
    return {"x-kubernetes-validations": list(found)}


def _quantity(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("must be a quantity, for example 500m, 2 or 4Gi")
    quantities.number(value)
    return str(value)


def as_tuple(value: object) -> object:
    """Convert a JSON list to a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _preserved(kind: str, max_items: int | None = None) -> WithJsonSchema:
    """Return the schema of a value that Kubernetes checks itself when it is part of a pod."""
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    if kind == "object":
        return WithJsonSchema(any_object)
    return WithJsonSchema({"type": "array", "maxItems": max_items, "items": any_object})


Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": quantities.PATTERN,
            "maxLength": quantities.MAX_LENGTH,
        }
    ),
]
"""`500m`, `2` or `4Gi`, as a string or as an integer."""


def _size(text: str) -> str:
    quantities.number(text)
    return text


Size = Annotated[
    str,
    Field(pattern=quantities.PATTERN, max_length=quantities.MAX_LENGTH),
    AfterValidator(_size),
]
"""The size of a volume. A string, so that CEL can compare the old with the new size."""

JsonObject = Annotated[dict[str, Any], _preserved("object")]
JsonObjects = Annotated[
    tuple[dict[str, Any], ...], BeforeValidator(as_tuple), _preserved("array", 64)
]

Text = Annotated[str, Field(min_length=1, max_length=1024)]
Path = Annotated[str, Field(min_length=1, max_length=4096)]
ObjectName = Annotated[
    str, Field(min_length=1, max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]
KeyName = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[-._a-zA-Z0-9]+$")]
StoreName = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z][a-z0-9_-]*$")]
Labels = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=65536)]], Field(max_length=64)]
Seconds = Annotated[int, Field(ge=0, le=86400)]


class SecretKey(SpecSection):
    """One key of a Secret in the cluster's namespace."""

    name: ObjectName = Field(description="Name of the Secret.")
    key: KeyName = Field(description="Key in the Secret.")


class ConfigMapKey(SpecSection):
    """One key of a ConfigMap in the cluster's namespace."""

    name: ObjectName = Field(description="Name of the ConfigMap.")
    key: KeyName = Field(default="caraway.yaml", description="Key in the ConfigMap.")
