"""The built-in tools, which read the data of the runtime."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caraway_ai.tools import bounding, sampling
from caraway_ai.tools.data_access import DataAccess, KnownTable, RowLimits, SearchAsked
from caraway_ai.tools.protocol import Arguments, JsonSchema, Tool, ToolCaller
from caraway_ai.tools.toolbox import BUILTIN
from caraway_core.errors import NotFoundError

_MOST_SEARCHED = 100
Call = Callable[[Arguments, ToolCaller], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class BuiltinTool:
    """A tool over the data of the runtime."""

    name: str
    description: str
    parameters: JsonSchema
    run: Call

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return its result.

        Raises:
            CarawayError: it failed.
        """
        return await self.run(arguments, caller)


class BuiltinTools:
    """The source of the built-in tools.

    `allowed` limits `list_datasets` to some tables, as its param `table_allowlist` says.
    """

    def __init__(self, data: DataAccess, limits: RowLimits) -> None:
        self.allowed: frozenset[str] | None = None
        self._data = data
        self._rows = limits
        self._tools = {tool.name: tool for tool in self._made()}

    @property
    def group(self) -> str:
        return BUILTIN

    def tools(self) -> Sequence[Tool]:
        """Return the tools that can be called now."""
        tools = list(self._tools.values())
        return tools if self._data.can_search else [each for each in tools if each.name != "search"]

    def _made(self) -> Sequence[BuiltinTool]:
        samples = sampling.tools(self._data, self._rows)
        return [
            BuiltinTool(
                "list_datasets",
                "List the tables that SQL can read, with their descriptions and what can be "
                "searched in them.",
                _object({}),
                self._list_datasets,
            ),
            BuiltinTool(
                "sql",
                "Run one read-only SQL query (PostgreSQL dialect, Apache DataFusion functions) and "
                "return its rows. Look at table_schema first; aggregate in SQL rather than "
                "reading many rows.",
                _object({"query": _text("One SELECT statement.")}, "query"),
                self._sql,
            ),
            BuiltinTool(
                "table_schema",
                "Return the columns of tables: names, types, descriptions and keys.",
                _object(
                    {
                        "tables": {
                            "type": "array",
                            "items": {"type": "string"},
                            "minItems": 1,
                            "maxItems": 50,
                            "description": "The names of the tables, from list_datasets.",
                        },
                        "output": {
                            "type": "string",
                            "enum": ["full", "minimal"],
                            "default": "full",
                            "description": "`minimal` returns only names and types.",
                        },
                    },
                    "tables",
                ),
                self._table_schema,
            ),
            BuiltinTool(
                "search",
                "Search the text of datasets by meaning and by keywords, and return the best rows.",
                _object(_SEARCH, "text"),
                self._search,
            ),
            *(
                BuiltinTool(each.name, each.description, each.parameters, each.run)
                for each in samples
            ),
            BuiltinTool(
                "get_readiness",
                "Return the status of every dataset, view, model and tool of this runtime.",
                _object({}),
                self._get_readiness,
            ),
        ]

    async def _list_datasets(self, arguments: Arguments, caller: ToolCaller) -> object:
        return [
            _listed(table)
            for table in self._data.tables(caller)
            if self.allowed is None or table.name in self.allowed
        ]

    async def _sql(self, arguments: Arguments, caller: ToolCaller) -> object:
        read_rows = await self._data.query(arguments["query"], caller, self._rows)
        return bounding.cut(read_rows.rows) if read_rows.is_truncated else read_rows.rows

    async def _table_schema(self, arguments: Arguments, caller: ToolCaller) -> object:
        tables = [self._data.find(name, caller) for name in arguments["tables"]]
        is_full = arguments["output"] == "full"
        return [await self._described(table, caller, is_full) for table in tables]

    async def _described(self, table: KnownTable, caller: ToolCaller, is_full: bool) -> object:
        columns = await self._data.columns(table.name, caller)
        if not is_full:
            plain = [{"name": each.name, "data_type": each.data_type} for each in columns]
            return {"table": table.name, "columns": plain}
        told = [
            {
                "name": each.name,
                "data_type": each.data_type,
                "nullable": each.nullable,
                **({"description": each.description} if each.description else {}),
            }
            for each in columns
        ]
        described: dict[str, object] = {"table": table.name}
        if table.description:
            described["description"] = table.description
        if table.primary_key:
            described["primary_key"] = list(table.primary_key)
        return {**described, "columns": told}

    async def _search(self, arguments: Arguments, caller: ToolCaller) -> object:
        asked = SearchAsked(
            text=arguments["text"],
            datasets=tuple(arguments.get("datasets", ())) or self._searchable(caller),
            limit=arguments["limit"],
            where=arguments.get("where"),
            additional_columns=tuple(arguments.get("additional_columns", ())),
            keywords=tuple(arguments.get("keywords", ())),
        )
        return await self._data.search(asked, caller)

    def _searchable(self, caller: ToolCaller) -> tuple[str, ...]:
        names = [
            table.name
            for table in self._data.tables(caller)
            if table.vector_columns or table.text_columns
        ]
        if not names:
            raise NotFoundError("no dataset can be searched; query with SQL instead")
        return tuple(names)

    async def _get_readiness(self, arguments: Arguments, caller: ToolCaller) -> object:
        components = self._data.components()
        if caller.tables is None:
            return components
        # Other kinds have no tables: their names would reveal the use of the runtime.
        return {
            kind: {name: each for name, each in components[kind].items() if name in caller.tables}
            for kind in ("datasets", "views")
        }


def _listed(table: KnownTable) -> dict[str, object]:
    return {
        "name": table.name,
        "description": table.description,
        "status": table.status,
        "can_search_by_meaning": bool(table.vector_columns),
        "can_search_text": bool(table.text_columns),
        "metadata": dict(table.metadata),
    }


def _object(properties: Mapping[str, object], *required: str) -> JsonSchema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str) -> JsonSchema:
    return {"type": "string", "minLength": 1, "description": description}


def _texts(description: str) -> JsonSchema:
    return {"type": "array", "items": {"type": "string"}, "description": description}


_SEARCH: Mapping[str, object] = {
    "text": _text("What to look for, in plain words."),
    "datasets": _texts("The datasets to search; all that can be searched without it."),
    "limit": {"type": "integer", "minimum": 1, "maximum": _MOST_SEARCHED, "default": 10},
    "where": {"type": "string", "description": "An SQL condition that rows must satisfy."},
    "additional_columns": _texts("Further columns to return."),
    "keywords": _texts("Words that the text must contain."),
}
