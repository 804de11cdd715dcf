"""The sections of tools."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from caraway_core.manifest.shape.base import (
    Anything,
    CountOrNone,
    Section,
    Text,
    TextList,
    Texts,
)


def _check_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise ValueError(f"'{text}' is not a tool name; use up to 64 letters, digits, '_' and '-'")
    return text


class ToolParameterSection(Section):
    """A parameter, in words of JSON Schema; it is required unless it has a default."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"]
    description: str | None = None
    required: bool | None = None
    default: Any = None
    enum: list[Any] = Field(default_factory=list)
    minimum: float | None = None
    maximum: float | None = None
    min_length: CountOrNone | None = Field(None, alias="minLength")
    max_length: CountOrNone | None = Field(None, alias="maxLength")
    format: Text | None = None
    items: Anything = Field(default_factory=dict)


class ToolSection(Section):
    from_: Text = Field(alias="from")
    name: Annotated[Text, AfterValidator(_check_name)]
    description: str | None = None
    sql: Text | None = None
    parameters: dict[str, ToolParameterSection] = Field(default_factory=dict)
    groups: TextList = Field(default_factory=list)
    params: Texts = Field(default_factory=dict)
    env: Texts = Field(default_factory=dict)
    metadata: Anything = Field(default_factory=dict)
    as_sql: bool = False
    depends_on: TextList = Field([], alias="dependsOn")
