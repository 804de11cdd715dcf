"""All accelerated datasets of a scheduler: one keeper each, and what users ask of them."""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from caraway_core.errors import CarawayError, DatasetError
from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_core.manifest.acceleration import Acceleration
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.state import StateStore
from caraway_core.tables import ResultPlace
from caraway_scheduler.acceleration import overrides, statements
from caraway_scheduler.acceleration import refresh_events as events
from caraway_scheduler.acceleration.backoff import Retries
from caraway_scheduler.acceleration.counting import Counting
from caraway_scheduler.acceleration.keeper import Keeper, Plan
from caraway_scheduler.acceleration.making import Maker, Stored
from caraway_scheduler.acceleration.recipes import Recipe
from caraway_scheduler.acceleration.refreshing import Refreshes, status
from caraway_scheduler.acceleration.schedule import Cron, Interval, Schedule, Timetable
from caraway_scheduler.acceleration.versions import Version, Versions, name_in
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.states import DatasetState, ReadyState
from caraway_scheduler.history.tasks import TaskRecord

logger = logging.getLogger(__name__)
_REWATCH_S = 2.0


class NotAcceleratedError(CarawayError):
    """The dataset is there, and is not accelerated."""


class NoDatasetError(CarawayError):
    """There is no dataset of that name."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What can be told of an accelerated dataset."""

    refreshes: Refreshes
    version: Version | None
    stored: Stored


class Accelerations:
    """Begins and ends keepers as datasets come and go, and follows versions in the state store."""

    def __init__(
        self,
        catalog: Catalog,
        dispatch: Dispatch,
        store: StateStore,
        results: ResultStore,
        place: ResultPlace,
        owner: str,
        record: Callable[[TaskRecord], None] = lambda _record: None,
    ) -> None:
        self.counting = Counting(record)
        self._catalog = catalog
        self._maker = Maker(dispatch, place)
        self._versions = Versions(store, owner)
        self._results = results
        self._keepers: dict[TableName, tuple[Keeper, asyncio.Task[None]]] = {}
        self._settings: dict[TableName, events.Settings] = {}

    def begin(self, state: DatasetState, acceleration: Acceleration) -> None:
        """Keep a dataset of the manifest, in place of one of its name."""
        self.end(state.name)
        try:
            plan = plan_of(state.dataset, acceleration, state.ready_state)
        except ValueError as exc:
            failure = DatasetError("invalid", f"dataset '{state.name}': {exc}")
            logger.warning("dataset is not accelerated", extra={"reason": failure.message})
            self._catalog.tell(state.name, "error", failure)
            return
        self._settings[state.name] = plan.settings
        keeper = Keeper(
            plan,
            self._maker,
            self._versions,
            self._results,
            self._catalog.show,
            self._tell,
            self._catalog.source_schema,
            counting=self.counting,
        )
        task = asyncio.create_task(keeper.run(), name=f"refresh {state.name}")
        task.add_done_callback(_tell_failure)
        self._keepers[state.name] = keeper, task

    def end(self, name: TableName) -> None:
        """Keep a dataset no longer."""
        kept = self._keepers.pop(name, None)
        if kept is not None:
            kept[1].cancel()

    def source_loaded(self, name: TableName) -> None:
        kept = self._keepers.get(name)
        if kept is not None:
            kept[0].source_loaded()

    async def run(self) -> None:
        """Follow versions that other schedulers make, until cancelled."""
        while True:
            try:
                async for entry in self._versions.watch():
                    kept = self._keepers.get(name_in(entry))
                    if kept is not None and entry.value:
                        kept[0].news()
                return
            except CarawayError as exc:
                logger.warning("versions are not followed", extra={"cause": exc.message})
            for keeper, _ in self._keepers.values():
                keeper.news()
            await asyncio.sleep(_REWATCH_S)

    async def aclose(self) -> None:
        tasks = [task for _, task in self._keepers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._keepers.clear()

    def refresh(self, name: TableName, body: Mapping[str, object]) -> None:
        """Have a dataset refreshed as the body of a request says.

        Raises:
            NoDatasetError, NotAcceleratedError: there is nothing to refresh.
            RefreshRefusedError: it is not refreshed in such a way.
            ValueError: the body holds what it may not.
        """
        keeper = self._keeper(name)
        keeper.ask(events.Asked(overrides.read(body, name)))

    def set_refresh_sql(self, name: TableName, sql: str | None) -> None:
        """Change what is loaded, until the next start; None: as the manifest has it.

        Raises: as `refresh`.
        """
        keeper = self._keeper(name)
        settings = self._settings[name]
        if sql is not None:
            settings = replace(settings, refresh_sql=statements.refresh_sql(sql, name))
        keeper.configure(settings)

    def standing(self, name: TableName) -> Standing:
        """Tell how an accelerated dataset stands.

        Raises:
            NoDatasetError, NotAcceleratedError: there is no such thing.
        """
        keeper = self._keeper(name)
        return Standing(keeper.state, keeper.version, keeper.stored)

    def standings(self) -> Sequence[Standing]:
        """Tell how all accelerated datasets stand."""
        keepers = [keeper for keeper, _ in self._keepers.values()]
        return [Standing(each.state, each.version, each.stored) for each in keepers]

    def _keeper(self, name: TableName) -> Keeper:
        kept = self._keepers.get(name)
        if kept is not None:
            return kept[0]
        if name not in self._catalog.datasets:
            raise NoDatasetError(f"no dataset '{name}'; GET /v1/datasets lists them")
        raise NotAcceleratedError(
            f"dataset '{name}' is not accelerated; enable its 'acceleration' in the manifest"
        )

    def _tell(self, name: TableName, refreshes: Refreshes, _stored: Stored) -> None:
        error = None
        if refreshes.error:
            error = DatasetError("unavailable", f"dataset '{name}': {refreshes.error}")
        self._catalog.tell(name, status(refreshes), error)


def plan_of(dataset: Dataset, acceleration: Acceleration, ready_state: ReadyState) -> Plan:
    """Return what a dataset asks for.

    Raises:
        ValueError: a part of it is not understood; the manifest has been checked before.
    """
    name, refresh = TableName(dataset.name), acceleration.refresh
    sql = statements.refresh_sql(refresh.sql, name) if refresh.sql else None
    schedule: Schedule | None = None
    if refresh.period_s is not None:
        schedule = Interval(refresh.period_s)
    elif refresh.cron is not None:
        schedule = Cron(refresh.cron)
    attempts = refresh.retry_max_attempts
    settings = events.Settings(
        refresh_mode=refresh.mode,
        refresh_sql=sql,
        ready_state=ready_state,
        retries=Retries(attempts != 0, attempts),
        has_time_column=dataset.time_column is not None,
    )
    return Plan(
        name,
        Timetable(schedule, refresh.on_startup, refresh.jitter_max_s),
        settings,
        _origin(dataset, acceleration),
        _recipe(dataset, acceleration),
        reopens=acceleration.mode != "memory",
    )


def _recipe(dataset: Dataset, acceleration: Acceleration) -> Recipe:
    name, kept = TableName(dataset.name), acceleration.retention
    condition = None
    if kept is not None and kept.sql:
        condition = statements.retention_sql(kept.sql, name).condition
    return Recipe(
        name,
        dataset.time_column,
        dataset.time_format,
        acceleration.refresh.data_window_s,
        acceleration.refresh.append_overlap_s or 0.0,
        acceleration.primary_key,
        kept.period_s if kept else None,
        condition,
        acceleration.sort_by,
    )


def _origin(dataset: Dataset, acceleration: Acceleration) -> str:
    """Tell what a version is of, without the secrets that lead there."""
    text = repr((dataset.source, dataset.columns, acceleration.refresh.sql, acceleration.sort_by))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _tell_failure(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (exc := task.exception()) is not None:
        logger.error("a dataset is not kept any more", exc_info=exc)
