"""The sections of functions."""

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from caraway_core.manifest.sections import (
    After,
    Anything,
    Items,
    Limits,
    Metadata,
    Section,
    Text,
    TextList,
    Texts,
    Written,
    key,
)

SQL_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,62}"


def _check_name(text: str) -> str:
    if not re.fullmatch(SQL_NAME, text):
        raise ValueError(f"'{text}' is not a name in SQL; use up to 63 letters, digits and '_'")
    return text


SqlName = Annotated[Written, After(_check_name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionArgumentSection(Section):
    """A parameter; it is required unless it has a default."""

    name: SqlName
    type: Text
    description: str | None = None
    required: bool | None = None
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedColumnSection(Section):
    name: SqlName
    type: Text
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureSection(Section):
    args: Annotated[Items[FunctionArgumentSection], Limits(max_length=64)] = ()
    returns: Text | Items[ReturnedColumnSection] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSection(Section):
    name: SqlName
    from_: Text = key("from", default="sql")
    enabled: bool = True
    description: str | None = None
    kind: Literal["scalar", "table"] = "scalar"
    signature: SignatureSection = SignatureSection()
    body: Text | None = None
    body_ref: Text | None = None
    volatility: Literal["immutable", "stable", "volatile"] | None = None
    as_tool: bool = True
    params: Texts = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)
    metrics: Anything = field(default_factory=dict)
    depends_on: TextList = key("dependsOn", default=())
