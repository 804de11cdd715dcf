"""What every section shares, and the kinds of values that fields hold."""

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

from caraway_operator.resources import quantities

Rule = dict[str, str]
"""A CEL rule: `rule`, `message`, and where it helps `fieldPath`."""


class Section(BaseModel):
    """A mapping with known keys, in camelCase where they are written.

    Keys that are not known are dropped, as the API server drops them: an object that an older or
    newer version of the CRD let in must not stop the operator.
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
    def _drop_empty(cls, content: Any) -> Any:
        """A key without a value counts as absent, as the API server has it."""
        if not isinstance(content, dict):
            return content
        return {key: value for key, value in content.items() if value is not None}


def rules(*found: Rule) -> dict[str, Any]:
    """Return what a model's `json_schema_extra` says about its CEL rules."""
    return {"x-kubernetes-validations": list(found)}


def _quantity(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("must be a quantity, for example 500m, 2 or 4Gi")
    quantities.number(value)
    return str(value)


def as_tuple(value: object) -> object:
    """Let a list, as JSON has it, be the frozen thing that a model holds."""
    return tuple(value) if isinstance(value, list) else value


def _preserved(kind: str, max_items: int | None = None) -> WithJsonSchema:
    """The schema of what Kubernetes itself checks, once it is part of a pod."""
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
"""`500m`, `2`, `4Gi`; written as a text or as a whole number."""


def _size(text: str) -> str:
    quantities.number(text)
    return text


Size = Annotated[
    str,
    Field(pattern=quantities.PATTERN, max_length=quantities.MAX_LENGTH),
    AfterValidator(_size),
]
"""The size of a volume, a text, so that CEL can compare the old one with the new one."""

Object = Annotated[dict[str, Any], _preserved("object")]
Objects = Annotated[tuple[dict[str, Any], ...], BeforeValidator(as_tuple), _preserved("array", 64)]

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


class SecretKey(Section):
    """One key of a Secret in the cluster's namespace."""

    name: ObjectName = Field(description="Name of the Secret.")
    key: KeyName = Field(description="Key in the Secret.")


class ConfigMapKey(Section):
    """One key of a ConfigMap in the cluster's namespace."""

    name: ObjectName = Field(description="Name of the ConfigMap.")
    key: KeyName = Field(default="caraway.yaml", description="Key in the ConfigMap.")
