"""The built-in tools that look at some rows or values of a table."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from caraway_ai.tools import bounding
from caraway_ai.tools.data_access import DataAccess, KnownColumn, KnownTable, RowLimits
from caraway_ai.tools.protocol import Arguments, JsonSchema, ToolCaller
from caraway_ai.tools.sql_names import quoted, quoted_table
from caraway_core.errors import InvalidRequestError
from caraway_core.loading import registry
from caraway_core.sqltext import sort_keys

_MOST_ROWS = 100
_MOST_COLUMNS = 50


@dataclass(frozen=True, slots=True)
class SamplingTool:
    """One of the tools, without its data."""

    name: str
    description: str
    parameters: JsonSchema
    run: Callable[[Arguments, ToolCaller], Awaitable[object]]


def tools(data: DataAccess, limits: RowLimits) -> Sequence[SamplingTool]:
    """Return the tools over some data."""
    return [
        SamplingTool(
            "random_sample",
            "Return some random rows of a table.",
            _schema({}),
            partial(_random, data, limits),
        ),
        SamplingTool(
            "sample_distinct_columns",
            "Return some distinct values of each column of a table, to learn how values are "
            "written before filtering by them.",
            _schema(
                {
                    "cols": {
                        "type": "array",
                        "items": {"type": "string"},
                        "maxItems": _MOST_COLUMNS,
                        "description": "The columns; all of them without it.",
                    }
                }
            ),
            partial(_distinct, data, limits),
        ),
        SamplingTool(
            "top_n_sample",
            "Return the first rows of a table in an order.",
            _schema(
                {
                    "order_by": {
                        "type": "string",
                        "minLength": 1,
                        "description": "The columns to order by, as in ORDER BY: "
                        "`price DESC NULLS LAST`.",
                    }
                },
                "order_by",
            ),
            partial(_top, data, limits),
        ),
    ]


async def _random(
    data: DataAccess, limits: RowLimits, arguments: Arguments, caller: ToolCaller
) -> object:
    table = quoted_table(data.find(arguments["tbl"], caller).name)
    sql = f"SELECT * FROM {table} ORDER BY random() LIMIT {arguments['limit']}"
    return await _rows(data, sql, caller, limits)


async def _top(
    data: DataAccess, limits: RowLimits, arguments: Arguments, caller: ToolCaller
) -> object:
    table = data.find(arguments["tbl"], caller)
    columns = await data.columns(table.name, caller)
    order = ", ".join(_keys(arguments["order_by"], table, columns))
    sql = f"SELECT * FROM {quoted_table(table.name)} ORDER BY {order} LIMIT {arguments['limit']}"
    return await _rows(data, sql, caller, limits)


async def _distinct(
    data: DataAccess, limits: RowLimits, arguments: Arguments, caller: ToolCaller
) -> object:
    table = data.find(arguments["tbl"], caller)
    known_columns = await data.columns(table.name, caller)
    asked = arguments.get("cols") or [each.name for each in known_columns][:_MOST_COLUMNS]
    columns = [_column(name, table, known_columns) for name in asked]
    found: dict[str, Any] = {}
    for column in columns:
        name = quoted(column)
        sql = (
            f"SELECT DISTINCT {name} AS v FROM {quoted_table(table.name)} WHERE {name} IS NOT NULL "
            f"ORDER BY v LIMIT {arguments['limit']}"
        )
        read = await data.query(sql, caller, limits)
        found[column] = [row["v"] for row in read.rows]
    return found


async def _rows(data: DataAccess, sql: str, caller: ToolCaller, limits: RowLimits) -> Any:
    read = await data.query(sql, caller, limits)
    return bounding.cut(read.rows) if read.is_truncated else read.rows


def _keys(text: str, table: KnownTable, columns: Sequence[KnownColumn]) -> Iterator[str]:
    """Yield the keys of an ORDER BY, whose columns must be those of the table."""
    for key in sort_keys.sort_keys(text):
        if not key.name:
            raise InvalidRequestError(
                f"'order_by': '{text[:100]}' has no column before or after a comma; write for "
                "example: price DESC, name"
            )
        column = quoted(_column(key.name, table, columns))
        nulls = f" NULLS {key.nulls}" if key.nulls else ""
        yield f"{column} {key.direction or 'ASC'}{nulls}"


def _column(name: str, table: KnownTable, columns: Sequence[KnownColumn]) -> str:
    """Return the column that a name stands for: as it is spelled, or else in any case."""
    names = [each.name for each in columns]
    bare = name.strip()
    unquoted = sort_keys.bare_name(bare)
    for spelled in (bare, unquoted, unquoted.lower()):
        if spelled in names:
            return spelled
    alike = [each for each in names if each.lower() == unquoted.lower()]
    if not alike:
        unknown = registry.unknown("column", bare[:100], names)
        raise InvalidRequestError(f"table '{table.name}': {unknown}")
    if len(alike) > 1:
        known = "' and '".join(alike)
        raise InvalidRequestError(
            f"table '{table.name}': column '{bare[:100]}' may be '{known}'; write it as it is "
            "spelled"
        )
    return alike[0]


def _schema(more: Mapping[str, Any], *required: str) -> JsonSchema:
    properties = {
        "tbl": {"type": "string", "minLength": 1, "description": "The name of the table."},
        **more,
        "limit": {"type": "integer", "minimum": 1, "maximum": _MOST_ROWS, "default": 10},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["tbl", *required],
        "additionalProperties": False,
    }
