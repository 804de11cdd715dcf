"""A tool, and the caller of a tool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from caraway_core.ids import PUBLIC, PrincipalId, TableName

JsonSchema = Mapping[str, Any]
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The principal that a tool works for; a tool has no rights beyond those.

    `tables` names the only datasets and views that tools may read for it; None allows all. The
    trace and span ids are those of the request that the calls belong to.
    """

    principal: PrincipalId = PUBLIC
    may_write: bool = False
    is_admin: bool = False
    tables: frozenset[TableName] | None = None
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str | None = None


class Tool(Protocol):
    """A function that a model may call. Its arguments are JSON, and so is its result."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> JsonSchema:
        """The JSON Schema of its arguments, whose type is `object`."""
        ...

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return the result as a JSON value. The arguments match `parameters`.

        Raises:
            CarawayError: the call failed; the message is meant for the model.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as models and clients see it."""

    name: str
    description: str
    parameters: JsonSchema

    @classmethod
    def from_tool(cls, tool: Tool) -> "ToolDefinition":
        return cls(tool.name, tool.description, tool.parameters)
