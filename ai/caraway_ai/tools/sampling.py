"""The built-in tools that look at some rows or values of a table."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from caraway_ai.tools import bounding
from caraway_ai.tools.data_access import DataAccess, KnownColumn, KnownTable, RowLimits
from caraway_ai.tools.protocol import Arguments, JsonSchema, ToolCaller
from caraway_ai.tools.sql_names import quoted, quoted_table
from caraway_core import registry
from caraway_core.errors import InvalidRequestError

_MOST_ROWS = 100
_MOST_COLUMNS = 50


@dataclass(frozen=True, slots=True)
class SamplingTool:
    """One of the tools, without its data."""

    name: str
    description: str
    parameters: JsonSchema
    run: Callable[[Arguments, ToolCaller], Awaitable[Any]]


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
                        "description": "The columns to order by, as in ORDER BY: `price DESC`.",
                    }
                },
                "order_by",
            ),
            partial(_top, data, limits),
        ),
    ]


async def _random(
    data: DataAccess, limits: RowLimits, arguments: Arguments, caller: ToolCaller
) -> Any:
    table = quoted_table(data.find(arguments["tbl"], caller).name)
    sql = f"SELECT * FROM {table} ORDER BY random() LIMIT {arguments['limit']}"
    return await _rows(data, sql, caller, limits)


async def _top(
    data: DataAccess, limits: RowLimits, arguments: Arguments, caller: ToolCaller
) -> Any:
    table = data.find(arguments["tbl"], caller)
    columns = await data.columns(table.name, caller)
    order = ", ".join(_ordered(part, table, columns) for part in arguments["order_by"].split(","))
    sql = f"SELECT * FROM {quoted_table(table.name)} ORDER BY {order} LIMIT {arguments['limit']}"
    return await _rows(data, sql, caller, limits)


async def _distinct(
    data: DataAccess, limits: RowLimits, arguments: Arguments, caller: ToolCaller
) -> Any:
    table = data.find(arguments["tbl"], caller)
    known = await data.columns(table.name, caller)
    asked = arguments.get("cols") or [each.name for each in known][:_MOST_COLUMNS]
    columns = [_column(name, table, known) for name in asked]
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


def _ordered(text: str, table: KnownTable, columns: Sequence[KnownColumn]) -> str:
    """Return one key of an ORDER BY, whose column must be one of the table."""
    name, direction = text.strip(), "ASC"
    for word in ("ASC", "DESC"):
        if name.upper().endswith(f" {word}"):
            name, direction = name[: -len(word)].strip(), word
    return f"{quoted(_column(name, table, columns))} {direction}"


def _column(name: str, table: KnownTable, columns: Sequence[KnownColumn]) -> str:
    names = {each.name: each.name for each in columns}
    lower = {each.name.lower(): each.name for each in columns}
    bare = name.strip()
    unquoted = bare[1:-1].replace('""', '"') if bare[:1] == bare[-1:] == '"' else bare
    found = names.get(bare) or names.get(unquoted) or lower.get(unquoted.lower())
    if found is None:
        unknown = registry.unknown("column", bare[:100], names)
        raise InvalidRequestError(f"table '{table.name}': {unknown}")
    return found


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
