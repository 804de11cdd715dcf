"""Tools of the manifest that run one statement: its functions, and SQL with placeholders."""

from collections.abc import Sequence
from typing import Any

from caraway_ai.tools import bounding
from caraway_ai.tools.data_access import DataAccess, RowLimits
from caraway_ai.tools.protocol import Arguments, JsonSchema, Tool, ToolCaller
from caraway_core.manifest.values.declared_tools import DeclaredTool
from caraway_core.sqltext.sql_functions import GROUP, SqlFunction

_VALUE = "value"


class FunctionTool:
    """Calls a function with the arguments as values of a statement that only reads."""

    def __init__(self, function: SqlFunction, data: DataAccess, limits: RowLimits) -> None:
        self.name = function.name
        kind = "rows" if function.is_table else "value"
        self.description = function.description or f"Returns the {kind} of {function.signature}"
        self.parameters: JsonSchema = function.schema
        self._is_table = function.is_table
        self._data = data
        self._limits = limits

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return the value of a scalar function, or the rows of a table.

        Raises:
            QueryError: the statement failed.
        """
        given = ", ".join(f"{name} => ${name}" for name in arguments)
        call = f"{self.name}({given})"
        sql = f"SELECT * FROM {call}" if self._is_table else f"SELECT {call} AS {_VALUE}"
        read = await self._data.bound_query(sql, arguments, caller, self._limits)
        if not self._is_table:
            return read.rows[0][_VALUE]
        return bounding.cut(read.rows) if read.is_truncated else read.rows


class FunctionTools:
    """The functions of the manifest that are tools."""

    group = GROUP

    def __init__(
        self, functions: Sequence[SqlFunction], data: DataAccess, limits: RowLimits
    ) -> None:
        self._tools = [FunctionTool(each, data, limits) for each in functions if each.as_tool]

    def tools(self) -> Sequence[Tool]:
        """Return the tools."""
        return self._tools


class SqlTool:
    """Runs the statement with the arguments as its values; it may only read."""

    def __init__(self, declared: DeclaredTool, data: DataAccess, limits: RowLimits) -> None:
        self.name = declared.name
        self.description = declared.description or f"Runs: {declared.sql}"
        self.parameters: JsonSchema = declared.parameters
        self._sql = declared.sql
        self._data = data
        self._limits = limits

    async def call(self, arguments: Arguments, caller: ToolCaller) -> Any:
        """Return the rows.

        Raises:
            QueryError: the statement failed.
        """
        # A placeholder without a value is NULL: the parameter is optional and was left out.
        values = {name: arguments.get(name) for name in self.parameters["properties"]}
        read = await self._data.bound_query(self._sql, values, caller, self._limits)
        return bounding.cut(read.rows) if read.is_truncated else read.rows
