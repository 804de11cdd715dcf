"""Handles the requests of users for datasets: refreshes, and a changed `refresh_sql`.

Both are stored before the answer (`wishes`), and all schedulers follow the stored requests.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from caraway_acceleration.accelerated import Accelerated
from caraway_acceleration.recipes import statements
from caraway_acceleration.recipes.statements import RefreshSql
from caraway_acceleration.refresh import overrides
from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.refreshing import RefreshRefusedError
from caraway_acceleration.refresh.sources import DatasetSources
from caraway_acceleration.versions import wishes
from caraway_acceleration.versions.making import VersionMaker
from caraway_acceleration.versions.versions import VersionStore
from caraway_core.concurrency.tasks import Tasks
from caraway_core.errors import CarawayError, DatasetError, UnavailableError
from caraway_core.ids import TableName

GRACE_S = 5.0
"""The time for which other schedulers leave a requested refresh to the one that accepted it."""
_RENEW_S = wishes.SETTINGS_TTL_S / 6


class RefreshRequests:
    """Accepts requests to this scheduler, and follows those to others."""

    def __init__(
        self,
        kept: Mapping[TableName, Accelerated],
        versions: VersionStore,
        maker: VersionMaker,
        sources: DatasetSources,
        *,
        is_shared: bool,
    ) -> None:
        self._kept = kept
        self._versions = versions
        self._maker = maker
        self._sources = sources
        self._is_shared = is_shared

    async def refresh(self, kept: Accelerated, body: Mapping[str, object]) -> None:
        """Request a refresh with the body of a request; it survives this scheduler.

        Raises:
            RefreshRefusedError: the dataset does not support this refresh.
            ValueError: the body has an invalid value.
            InvalidQueryError: its refresh_sql cannot be planned.
            StateAwayError: the request cannot be stored.
        """
        name = kept.plan.name
        refresh_overrides = overrides.read(body, name)
        kept.refresher.check(events.RefreshAsked(refresh_overrides))
        await self._plan(kept, refresh_overrides.refresh_sql)
        ask = await self._versions.wishes(name).ask(body)
        kept.refresher.ask(events.RefreshAsked(refresh_overrides, ask=ask.id))

    async def set_sql(self, kept: Accelerated, sql: str | None) -> None:
        """Change the statement that all schedulers load with; None changes nothing.

        The change lasts while any scheduler runs.

        Raises:
            RefreshRefusedError, ValueError, InvalidQueryError, StateAwayError: as in `refresh`.
        """
        name, settings = kept.plan.name, kept.plan.settings
        if settings.refresh_mode == "changes":
            raise RefreshRefusedError(
                f"dataset '{name}' does not use a refresh_sql: its refresh_mode is 'changes'"
            )
        if sql is None:
            return
        wanted = statements.refresh_sql(sql, name)
        await self._plan(kept, wanted)
        await self._versions.wishes(name).set_sql(sql, _manifest_sql(kept))
        _configure(kept, wanted)

    async def follow_requests(self, tasks: Tasks) -> None:
        """Follow the requests to other schedulers, if there may be any."""
        if self._is_shared:
            tasks.keep(self._follow_asks, "follow asked refreshes")
            tasks.keep(self._follow_settings, "follow settings of datasets")
            tasks.keep(self._renew_settings, "renew settings of datasets")
        else:
            # Settings end with the process that accepted them.
            tasks.keep(self._versions.forget_settings, "forget settings of datasets")

    async def _plan(self, kept: Accelerated, sql: RefreshSql | None) -> None:
        if sql is None:
            return
        try:
            source = self._sources.source_schema(kept.plan.name)
        except DatasetError as exc:
            raise UnavailableError(exc.message) from exc
        await self._maker.plan(kept.plan.recipe.full(sql, source, datetime.now(UTC)))

    async def _follow_asks(self) -> None:
        loop = asyncio.get_running_loop()
        async for entry in self._versions.wished(wishes.ASKED):
            kept = self._kept.get(wishes.name_in(entry))
            if kept is not None and entry.value:
                # The scheduler that accepted the request does it; a finished one is not repeated.
                loop.call_later(GRACE_S, kept.refresher.remind, wishes.ask_of(entry))

    async def _follow_settings(self) -> None:
        async for entry in self._versions.wished(wishes.SETTINGS):
            kept = self._kept.get(wishes.name_in(entry))
            if kept is not None and entry.value:
                sql = wishes.sql_of(entry, _manifest_sql(kept))
                if sql is not None:
                    _configure(kept, statements.refresh_sql(sql, kept.plan.name))

    async def _renew_settings(self) -> None:
        while True:
            for name, kept in list(self._kept.items()):
                with suppress(CarawayError):
                    sql = await self._versions.wishes(name).sql(_manifest_sql(kept))
                    if sql is not None:
                        _configure(kept, statements.refresh_sql(sql, name))
            await asyncio.sleep(_RENEW_S)


def _configure(kept: Accelerated, sql: RefreshSql) -> None:
    kept.refresher.configure(replace(kept.plan.settings, refresh_sql=sql))


def _manifest_sql(kept: Accelerated) -> wishes.ManifestNames:
    written = kept.plan.settings.refresh_sql
    return wishes.manifest(kept.current.subject.names, written.text if written else "")
