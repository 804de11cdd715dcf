"""Installs one catalog version after another, and keeps the result of the last."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from caraway_core.ids import CatalogVersion, TableName
from caraway_core.manifest import Manifest, SecretResolver
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.embedding import NO_EMBEDDING, CatalogEmbedding
from caraway_core.statements import CatalogSnapshot, SystemTable
from caraway_core.tables import TableSpec
from caraway_scheduler.catalog.judging import InstalledCatalog


class CatalogEmbedders(Protocol):
    """Keeps the embedding models of the manifest."""

    catalog: CatalogEmbedding

    def apply(self, manifest: Manifest, secrets: SecretResolver) -> bool:
        """Take the models of a manifest; return whether any changed."""


class Installer:
    """Installs one catalog at a time; `version` is the last one that was installed."""

    def __init__(
        self,
        dispatch: Dispatch,
        system: Mapping[TableName, SystemTable],
        embedders: CatalogEmbedders | None = None,
    ) -> None:
        self.version = CatalogVersion(0)
        self.installed: Mapping[TableName, TableSpec] = {}
        self.planned = InstalledCatalog()
        self._embedders = embedders
        self._embedded = NO_EMBEDDING
        self._dispatch = dispatch
        self._system = system
        self._tried = CatalogVersion(0)
        self._lock = asyncio.Lock()

    def apply_models(self, manifest: Manifest, secrets: SecretResolver) -> bool:
        """Take the embedding models of a manifest; return whether any changed."""
        return self._embedders is not None and self._embedders.apply(manifest, secrets)

    async def install(self, tables: Callable[[], Mapping[TableName, TableSpec]]) -> bool:
        """Install these tables for new statements; returns False if they are already installed.

        Passes on every error of dispatch; statements then keep using the previous tables.
        """
        async with self._lock:
            specs = tables()
            embedding = NO_EMBEDDING if self._embedders is None else self._embedders.catalog
            is_same = _same(specs, self.installed) and embedding is self._embedded
            if self.version and is_same:
                return False  # The installation that this call waited for may have included them.
            # Never reuse a number: some executors may hold a version that failed on others.
            self._tried = CatalogVersion(self._tried + 1)
            snapshot = CatalogSnapshot(self._tried, specs, self._system, embedding=embedding)
            failed = await self._dispatch.install(snapshot)
            self.version, self.installed = self._tried, specs
            self._embedded = embedding
            self.planned = InstalledCatalog(failed, self._dispatch.views())
            return True

    def failed_later(self, failed: Mapping[TableName, str]) -> None:
        """Add tables that failed on an executor after their catalog was served."""
        self.planned = replace(self.planned, failed={**self.planned.failed, **failed})


def _same(specs: Mapping[TableName, TableSpec], others: Mapping[TableName, TableSpec]) -> bool:
    """Compare by identity: a spec may contain a whole table, and each load creates a new one."""
    return specs.keys() == others.keys() and all(specs[name] is others[name] for name in specs)
