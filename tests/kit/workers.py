"""Makes workers with tables in memory."""

import time
from collections.abc import Callable, Mapping

from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.fleet import Description, TableCatalog
from caraway_core.releases.protocol_versions import PROTOCOL_VERSION
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.tasks.worker import Worker
from tests.kit.engine import snapshot


def identity(name: str = "e1") -> Description:
    return Description(ExecutorId(name), "", PROTOCOL_VERSION, "test", "here", 2, 0)


def catalog(
    tables: Mapping[str, TableSpec | str], version: int = 1, origin: str = "here"
) -> TableCatalog:
    specs: Mapping[TableName, TableSpec] = snapshot(tables).tables
    return TableCatalog(CatalogVersion(version), origin, specs)


def worker(
    tables: Mapping[str, TableSpec | str],
    settings: EngineSettings | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Worker:
    made = Worker(identity(), settings or EngineSettings(2), clock)
    assert made.install(catalog(tables)) == {}
    return made
