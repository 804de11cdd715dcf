"""The sections of functions."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from caraway_core.manifest.shape.base import Anything, Section, Text, TextList, Texts, Written

SQL_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,62}"


def _check_name(text: str) -> str:
    if not re.fullmatch(SQL_NAME, text):
        raise ValueError(f"'{text}' is not a name in SQL; use up to 63 letters, digits and '_'")
    return text


SqlName = Annotated[Written, AfterValidator(_check_name)]


class FunctionArgumentSection(Section):
    """A parameter; it is required unless it has a default."""

    name: SqlName
    type: Text
    description: str | None = None
    required: bool | None = None
    default: Any = None


class ReturnedColumnSection(Section):
    name: SqlName
    type: Text
    description: str | None = None


class SignatureSection(Section):
    args: list[FunctionArgumentSection] = Field(default_factory=list, max_length=64)
    returns: Text | list[ReturnedColumnSection] | None = None


class FunctionSection(Section):
    name: SqlName
    from_: Text = Field("sql", alias="from")
    enabled: bool = True
    description: str | None = None
    kind: Literal["scalar", "table"] = "scalar"
    signature: SignatureSection = Field(default_factory=lambda: SignatureSection())
    body: Text | None = None
    body_ref: Text | None = None
    volatility: Literal["immutable", "stable", "volatile"] | None = None
    as_tool: bool = True
    params: Texts = Field(default_factory=dict)
    metadata: Anything = Field(default_factory=dict)
    metrics: Anything = Field(default_factory=dict)
    depends_on: TextList = Field([], alias="dependsOn")
