"""The tools by which models keep notes, and read them in later conversations."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

from caraway_ai.tools import bounding
from caraway_ai.tools.builtin import BuiltinTool
from caraway_ai.tools.data_access import DataAccess, RowLimits
from caraway_ai.tools.protocol import Arguments, Tool, ToolCaller
from caraway_ai.tools.sql_names import quoted_table
from caraway_ai.tools.toolbox import MEMORY
from caraway_core.errors import InvalidRequestError, QueryForbiddenError
from caraway_core.ids import TableName
from caraway_core.manifest.texts import units

_MOST_THOUGHTS = 100
_LONGEST_THOUGHT = 8_192
_MOST_KEPT = 100_000
_DEFAULT_LAST = "24h"


class MemoryRows(Protocol):
    """The dataset that holds memories; the scheduler implements it."""

    @property
    def name(self) -> TableName: ...

    async def add(self, values: Sequence[str], caller: ToolCaller) -> Sequence[str]:
        """Add rows with the caller's rights, and return their ids.

        Raises:
            QueryError: they could not be written.
        """
        ...


class MemoryTools:
    """The source of the tools over memories. They are in no model's `auto`, for they write."""

    group = MEMORY

    def __init__(self, data: DataAccess, table: MemoryRows, limits: RowLimits) -> None:
        self._data = data
        self._table = table
        self._limits = limits
        self._tools = (
            BuiltinTool(
                "store_memory",
                "Keep facts worth knowing in later conversations, each as one sentence that is "
                "understood without this conversation.",
                _object("thoughts", thoughts=_THOUGHTS),
                self._store,
            ),
            BuiltinTool(
                "load_memory",
                "Return what was kept with store_memory during a period up to now, newest first.",
                _object(last=_LAST),
                self._load,
            ),
        )

    def tools(self) -> Sequence[Tool]:
        """Return the tools."""
        return self._tools

    async def _store(self, arguments: Arguments, caller: ToolCaller) -> object:
        table = self._data.find(self._table.name, caller).name
        if not caller.may_write:
            raise QueryForbiddenError(
                "this key may only read; storing memories needs a key that ends in :rw"
            )
        thoughts = list(dict.fromkeys(map(str.strip, arguments["thoughts"])))
        counted = await self._data.query(
            f"SELECT count(*) AS n FROM {quoted_table(table)}", caller, self._limits
        )
        if counted.rows[0]["n"] + len(thoughts) > _MOST_KEPT:
            raise InvalidRequestError(
                f"the dataset '{table}' holds {counted.rows[0]['n']} memories of at most "
                f"{_MOST_KEPT}; remove old ones with DELETE"
            )
        return {"stored": await self._table.add(thoughts, caller)}

    async def _load(self, arguments: Arguments, caller: ToolCaller) -> object:
        table = self._data.find(self._table.name, caller).name
        try:
            last = timedelta(seconds=units.seconds(arguments["last"]))
        except ValueError as exc:
            raise InvalidRequestError(f"'last': {exc}") from exc
        since = (datetime.now(UTC) - last).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        read = await self._data.query(
            "SELECT id, value, created_by, created_at "
            f"FROM {quoted_table(table)} WHERE created_at >= TIMESTAMPTZ '{since}' "
            "ORDER BY created_at DESC, id DESC",
            caller,
            self._limits,
        )
        return bounding.cut(read.rows) if read.is_truncated else read.rows


def _object(*required: str, **properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_THOUGHTS = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": _LONGEST_THOUGHT, "pattern": r"\S"},
    "minItems": 1,
    "maxItems": _MOST_THOUGHTS,
    "description": "The facts to keep.",
}
_LAST = {
    "type": "string",
    "minLength": 1,
    "default": _DEFAULT_LAST,
    "description": "How far to look back: `10m`, `24h`, `7d`.",
}
