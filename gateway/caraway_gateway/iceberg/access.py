"""Gives clients without credentials of a store access to the files of tables in it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from caraway_core.errors import QueryForbiddenError
from caraway_core.ids import TableName
from caraway_core.tables import StoreSpec
from caraway_gateway.iceberg import delegation, loaded_tables
from caraway_gateway.iceberg.delegation import FilesOfTables, SignRequest
from caraway_gateway.iceberg.keeping import HeldTable
from caraway_gateway.iceberg.loaded_tables import LoadedTable
from caraway_gateway.iceberg.vending import VendedKeys
from caraway_plugins.stores.published import Published

SIGNING = "remote-signing"
VENDING = "vended-credentials"


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """The access that the manifest allows; `modes` are in the order of its preference."""

    modes: tuple[str, ...] = ()
    role_arn: str = ""
    sts_endpoint: str | None = None


class TableAccess:
    """Gives clients access to files of tables in S3, as far as the manifest allows."""

    def __init__(self, settings: AccessSettings) -> None:
        self.modes = settings.modes
        self._keys = VendedKeys(settings.role_arn, settings.sts_endpoint)
        self._files: FilesOfTables | None = None

    def chosen(self, accepted: Iterable[str]) -> str | None:
        """Return the way that is given to a client of those that it accepts."""
        return next((each for each in self.modes if each in set(accepted)), None)

    async def answer(
        self, name: TableName, held: HeldTable, mode: str, place: Published, own: StoreSpec | None
    ) -> bytes:
        """Return the answer to a client that loads a table; `own` is the store of the place.

        Raises:
            UnavailableError: there are no credentials now.
            CarawayError: the place cannot be read.
        """
        store = held.table.store or own
        if store is None or store.kind != "s3":
            return held.answer()
        if mode == VENDING:
            return held.table.vended(await self.credentials(held.table, place, own))
        # Of a table without files, only what scans of it export is in a store.
        reach = loaded_tables.config(store)
        return held.table.document({**reach, **delegation.signing_config(name)})

    async def credentials(
        self, table: LoadedTable, place: Published, own: StoreSpec | None
    ) -> list[dict[str, Any]]:
        """Return temporary credentials for the files of a table.

        Raises:
            QueryForbiddenError: the manifest allows none.
            UnavailableError: there are none now.
            CarawayError: the place cannot be read.
        """
        self._check(VENDING)
        opened = await asyncio.to_thread(self._of(place).opened, table, own)
        return await asyncio.to_thread(self._keys.credentials, opened)

    async def sign(
        self,
        request: SignRequest,
        name: TableName,
        table: LoadedTable,
        principal: str,
        place: Published,
        own: StoreSpec | None,
    ) -> dict[str, object]:
        """Sign a request that reads a file of a table.

        Raises:
            QueryForbiddenError: the request is for another file, or the manifest allows none.
            CarawayError: the place cannot be read.
        """
        self._check(SIGNING)
        sign = self._of(place).sign
        return await asyncio.to_thread(sign, request, table, (table.store, own), principal, name)

    def _of(self, place: Published) -> FilesOfTables:
        self._files = self._files or FilesOfTables(place)
        return self._files

    def _check(self, mode: str) -> None:
        if mode not in self.modes:
            raise QueryForbiddenError(
                f"'runtime.iceberg.access_delegation' does not have '{mode}'; clients need access "
                "of their own to files"
            )
