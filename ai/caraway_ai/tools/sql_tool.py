"""A tool of the manifest that is one statement with placeholders."""

from typing import Any

from caraway_ai.tools import bounding
from caraway_ai.tools.data_access import DataAccess, RowLimits
from caraway_ai.tools.protocol import Arguments, JsonSchema, ToolCaller
from caraway_core.manifest.values.declared_tools import DeclaredTool


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
