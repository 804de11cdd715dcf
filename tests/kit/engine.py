"""Engine sessions over tables in memory."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from caraway_core.ids import CatalogVersion, TableName
from caraway_core.statements import CatalogSnapshot, Statement, SystemTable
from caraway_core.tables import MemoryTable, TableSpec, ViewTable
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions.sessions import Session


def memory(**columns: Any) -> MemoryTable:
    rows = pa.table(columns)
    return MemoryTable(rows.schema, rows)


def snapshot(
    tables: Mapping[str, TableSpec | str],
    system: Mapping[str, SystemTable] | None = None,
    version: int = 1,
) -> CatalogSnapshot:
    """Texts become views."""
    specs = {
        TableName(name): ViewTable(spec) if isinstance(spec, str) else spec
        for name, spec in tables.items()
    }
    named = {TableName(name): make for name, make in (system or {}).items()}
    return CatalogSnapshot(CatalogVersion(version), specs, named)


def session(
    tables: Mapping[str, TableSpec | str],
    system: Mapping[str, SystemTable] | None = None,
    *,
    memory_limit_bytes: int | None = None,
) -> Session:
    made = Session(EngineSettings(2, memory_limit_bytes), snapshot(tables, system))
    failed = made.install(None)
    assert failed == {}
    return made


async def rows(of: Session, sql: str, **options: Any) -> list[dict[str, Any]]:
    """Run a statement and return its rows."""
    stream = of.start(Statement(sql, options.pop("parameters", {}), **options))
    batches = [batch async for batch in stream]
    return [row for batch in batches for row in batch.to_pylist()]
