"""The SQL functions of a manifest as plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Volatility = Literal["immutable", "stable", "volatile"]
GROUP = "functions"
"""The group of the tools that functions are."""


@dataclass(frozen=True, slots=True)
class SqlCast:
    """A type, and the text before and after an expression that is cast to it."""

    type: str
    before: str = "("
    after: str = ")"

    def cast_of(self, expression: str) -> str:
        """Return the expression as a value of the type."""
        return f"{self.before}{expression}{self.after}"


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter; `default` is its SQL text, and None means that a call must give a value."""

    name: str
    cast: SqlCast
    default: str | None = None
    description: str | None = None
    schema: Mapping[str, Any] = field(default_factory=dict)
    """Its JSON Schema, for tools."""


@dataclass(frozen=True, slots=True)
class ReturnedColumn:
    """A column of a table function."""

    name: str
    cast: SqlCast


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function whose calls are replaced by its body.

    The body of a scalar function is an expression, and `returns` its type. That of a table function
    is a query; without `columns` it has those of the query.
    """

    name: str
    parameters: tuple[FunctionParameter, ...]
    body: str
    returns: SqlCast | None = None
    columns: tuple[ReturnedColumn, ...] = ()
    is_table: bool = False
    description: str | None = None
    volatility: Volatility = "volatile"
    as_tool: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> Literal["scalar", "table"]:
        """The kind of its result: a value for each row, or rows."""
        return "table" if self.is_table else "scalar"

    @property
    def signature(self) -> str:
        """Its signature, for people: `net_price(gross double, rate double = 0.19)`."""
        told = ", ".join(_told(each) for each in self.parameters)
        return f"{self.name}({told})"

    @property
    def example(self) -> str:
        """A statement that calls it with the arguments that it needs."""
        needed = [each for each in self.parameters if each.default is None]
        call = f"{self.name}({', '.join(f'${each.name}' for each in needed)})"
        return f"SELECT * FROM {call}" if self.is_table else f"SELECT {call}"

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {each.name: each.schema for each in self.parameters},
            "required": [each.name for each in self.parameters if each.default is None],
            "additionalProperties": False,
        }


def _told(parameter: FunctionParameter) -> str:
    default = "" if parameter.default is None else f" = {parameter.default}"
    return f"{parameter.name} {parameter.cast.type}{default}"
