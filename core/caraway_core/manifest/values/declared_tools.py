"""The tools of a manifest as plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ToolKind = Literal["builtin", "http", "mcp", "sql", "websearch"]
BUILTIN_TOOLS = (
    "get_readiness",
    "list_datasets",
    "load_memory",
    "random_sample",
    "sample_distinct_columns",
    "search",
    "sql",
    "store_memory",
    "table_schema",
    "top_n_sample",
)
OTHER_NAMES: Mapping[str, str] = {
    "memory:load": "load_memory",
    "memory:store": "store_memory",
    "document_similarity": "search",
}
"""Other names that callers and manifests may use; providers of models refuse some of them."""
RESERVED_TOOLS = (*BUILTIN_TOOLS, "tool_invoke", "tool_search")
"""Names that an entry of the manifest may not take."""


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """One entry of `tools`. `kind` and `target` are the halves of `from`; for `mcp` it is a server.

    `parameters` is a JSON Schema of an object. `params`, `env` and `sql` may hold secret
    references. With `as_sql` it is a table function, too.
    """

    name: str
    kind: ToolKind
    target: str = ""
    description: str | None = None
    sql: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    as_sql: bool = False
