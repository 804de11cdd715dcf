"""The base class of sections, and the types of values."""

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from caraway_core.manifest.texts import memory, scalars, units


class Section(BaseModel):
    """A mapping with known keys. A known key without a value counts as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        known = known_keys(cls)
        return {key: v for key, v in content.items() if v is not None or key not in known}


def known_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys of a section as they are written in a file."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _texts(value: object) -> object:
    if not isinstance(value, dict):
        return value
    texts = {}
    for key, item in value.items():
        if item is None or item == "":
            continue  # A key without a value counts as absent.
        try:
            texts[key] = scalars.written(item)
        except ValueError as exc:
            raise ValueError(f"the value of '{key}' {exc}") from exc
    return texts


def _text_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _positive(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError("must be more than 0")
    return value


Duration = Annotated[float, BeforeValidator(units.seconds)]
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
Size = Annotated[int, BeforeValidator(units.size_bytes)]
MemorySize = Annotated[int, BeforeValidator(memory.limit_bytes)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
CountOrNone = Annotated[int, Field(ge=0, le=1_000_000)]
Text = Annotated[str, Field(min_length=1)]
Written = Annotated[str, BeforeValidator(scalars.written)]
"""A string that may be unquoted even if it looks like a number."""

Texts = Annotated[dict[str, str], BeforeValidator(_texts)]
TextList = Annotated[list[str], BeforeValidator(_text_list)]
Anything = dict[str, Any]
"""A mapping that is not checked further."""
