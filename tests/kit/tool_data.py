"""The data of tools over tables in memory: statements run in the engine, as in a scheduler."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_ai.tools.data_access import (
    KnownColumn,
    KnownTable,
    ReadRows,
    RowLimits,
    SearchAsked,
)
from caraway_ai.tools.protocol import ToolCaller
from caraway_core.errors import NotFoundError
from caraway_core.ids import TableName
from caraway_core.loading import registry
from caraway_core.manifest.texts import names
from caraway_core.statements import Statement
from caraway_core.tables import MemoryTable
from caraway_engine.sessions.sessions import Session
from caraway_serving import formats
from caraway_serving.formats import datatypes
from tests.kit.engine import session

LIMITS = RowLimits(500, 256 * 1024)


@dataclass
class EngineData:
    """Tables by name. `known` says more of some; `asked` and `statements` keep the calls."""

    rows: Mapping[str, pa.Table]
    known: Mapping[str, KnownTable] = field(default_factory=dict)
    can_search: bool = False
    states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    asked: list[SearchAsked] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    _session: Session = field(init=False)

    def __post_init__(self) -> None:
        self._session = session(
            {name: MemoryTable(rows.schema, rows) for name, rows in self.rows.items()}
        )

    def tables(self, caller: ToolCaller) -> Sequence[KnownTable]:
        found = [self.known.get(name) or KnownTable(TableName(name), "dataset")
                 for name in self.rows]  # fmt: skip
        return [each for each in found if caller.tables is None or each.name in caller.tables]

    def find(self, name: str, caller: ToolCaller) -> KnownTable:
        tables = {each.name: each for each in self.tables(caller)}
        with contextlib.suppress(ValueError):
            for spelled in names.spellings(name):
                if TableName(spelled) in tables:
                    return tables[TableName(spelled)]
        raise NotFoundError(registry.unknown("table", name, tables))

    async def columns(self, table: TableName, caller: ToolCaller) -> Sequence[KnownColumn]:
        return [
            KnownColumn(each.name, datatypes.display(each.type), each.nullable)
            for each in self.rows[table].schema
        ]

    async def query(self, sql: str, caller: ToolCaller, limits: RowLimits) -> ReadRows:
        return await self.bound_query(sql, {}, caller, limits)

    async def bound_query(
        self, sql: str, parameters: Mapping[str, object], caller: ToolCaller, limits: RowLimits
    ) -> ReadRows:
        self.statements.append(sql)
        stream = self._session.start(Statement(sql, dict[str, Any](parameters), may_write=False))
        encoder = formats.make("json")
        found: list[dict[str, Any]] = []
        async for batch in stream:
            parts = encoder.encode_start(batch.schema), encoder.encode(batch), encoder.end(0)
            found += json.loads(b"".join(parts))
        return ReadRows(found[: limits.rows], is_truncated=len(found) > limits.rows)

    async def search(self, asked: SearchAsked, caller: ToolCaller) -> Any:
        self.asked.append(asked)
        return {"results": []}

    def components(self) -> Mapping[str, Mapping[str, str]]:
        return self.states
