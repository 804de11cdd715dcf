"""The sections of tools."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from caraway_core.manifest.sections import (
    After,
    Anything,
    CountOrNone,
    Items,
    Metadata,
    Section,
    Text,
    TextList,
    Texts,
    key,
)


def _check_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise ValueError(f"'{text}' is not a tool name; use up to 64 letters, digits, '_' and '-'")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolParameterSection(Section):
    """A parameter, in words of JSON Schema; it is required unless it has a default."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"]
    description: str | None = None
    required: bool | None = None
    default: Any = None
    enum: Items[Any] = ()
    minimum: float | None = None
    maximum: float | None = None
    min_length: CountOrNone | None = key("minLength", default=None)
    max_length: CountOrNone | None = key("maxLength", default=None)
    format: Text | None = None
    items: Anything = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSection(Section):
    from_: Text = key("from")
    name: Annotated[Text, After(_check_name)]
    description: str | None = None
    sql: Text | None = None
    parameters: dict[str, ToolParameterSection] = field(default_factory=dict)
    groups: TextList = ()
    params: Texts = field(default_factory=dict)
    env: Texts = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)
    as_sql: bool = False
    depends_on: TextList = key("dependsOn", default=())
