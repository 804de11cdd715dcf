"""Gives dispatch one catalog after another, and keeps what came of the last one."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from caraway_core.ids import CatalogVersion, TableName
from caraway_core.protocols.dispatch import CatalogSnapshot, Dispatch, SystemTable
from caraway_core.tables import TableSpec
from caraway_scheduler.catalog.judging import InstalledCatalog


class Installer:
    """One installation at a time; `version` counts those that succeeded or were tried."""

    def __init__(self, dispatch: Dispatch, system: Mapping[TableName, SystemTable]) -> None:
        self.version = CatalogVersion(0)
        self.installed: Mapping[TableName, TableSpec] = {}
        self.planned = InstalledCatalog()
        self._dispatch = dispatch
        self._system = system
        self._tried = CatalogVersion(0)
        self._lock = asyncio.Lock()

    async def install(self, tables: Callable[[], Mapping[TableName, TableSpec]]) -> bool:
        """Make these tables the ones that new statements see; False: they are already.

        Raises whatever dispatch does. Statements then see the tables before.
        """
        async with self._lock:
            specs = tables()
            if self.version and _same(specs, self.installed):
                return False  # An installation that waited for another may find its work done.
            # Never a number twice: some executors may hold what failed on others.
            self._tried = CatalogVersion(self._tried + 1)
            snapshot = CatalogSnapshot(self._tried, specs, self._system)
            failed = await self._dispatch.install(snapshot)
            self.version, self.installed = self._tried, specs
            self.planned = InstalledCatalog(failed, self._dispatch.views())
            return True

    def failed_later(self, failed: Mapping[TableName, str]) -> None:
        """Add tables that failed on an executor after their catalog was served."""
        self.planned = replace(self.planned, failed={**self.planned.failed, **failed})


def _same(specs: Mapping[TableName, TableSpec], others: Mapping[TableName, TableSpec]) -> bool:
    """Compare by identity: a spec may hold a whole table, and loading again makes a new one."""
    return specs.keys() == others.keys() and all(specs[name] is others[name] for name in specs)
