"""Where a scheduler keeps what must outlive it: the state store, and the places for chunks."""

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from caraway_acceleration.snapshot_requests import SnapshotPlace
from caraway_core.loading import registry
from caraway_core.manifest import Manifest, RuntimeSettings, SecretResolver
from caraway_core.process.data_directory import DataDirectory
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.state import StateStore
from caraway_core.tables import ResultPlace
from caraway_gateway.composition import state
from caraway_gateway.composition.backend import Backend
from caraway_scheduler.jobs import places

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchedulerStorage:
    """The state store, the place for chunks of answers and datasets, and that for snapshots."""

    state: StateStore
    place: ResultPlace
    snapshots: SnapshotPlace | None


async def opened(
    manifest: Manifest,
    secrets: SecretResolver,
    data: DataDirectory,
    stack: AsyncExitStack,
    backend: Backend,
) -> SchedulerStorage:
    """Open the stores; the stack closes a state store that is the process's own.

    Raises:
        CarawayError: one of them cannot be used.
    """
    settings = manifest.runtime
    if backend.is_shared and settings.scheduler.state_location is None:
        logger.warning(
            "answers of asynchronous queries stay with the scheduler that ran them; set "
            "runtime.scheduler.state_location to a place that all schedulers and executors reach"
        )
    store = backend.state or await state.opened(None, data.path / state.STATE_FILE, stack)
    place = places.place(settings, secrets, data.path / "results", backend.token)
    if settings.scheduler.state_location is not None:
        # Chunks without a job and a version are removed, so that runtimes which know nothing of
        # each other's must not look into one folder.
        place = place.under(await state.identity(store))
    return SchedulerStorage(store, place, await _snapshots(manifest, secrets, backend.token))


async def results(place: ResultPlace) -> ResultStore:
    """Open the store of a place. Raises CarawayError if it cannot be used."""
    store_class = registry.RESULT_STORES.load(place.kind)
    store: ResultStore = await asyncio.to_thread(store_class.at, place)
    return store


def published(settings: RuntimeSettings, secrets: SecretResolver, default: Path) -> ResultPlace:
    """Return the place of what the table catalog writes for other engines.

    Raises:
        CarawayError: the location or its params are invalid, or a secret is missing.
    """
    iceberg_settings = settings.iceberg
    if iceberg_settings.location is None:
        return ResultPlace("file", str(default.absolute()))
    return places.named(
        "runtime.iceberg.location", iceberg_settings.location, iceberg_settings.params, secrets
    )


async def _snapshots(
    manifest: Manifest, secrets: SecretResolver, token: str
) -> SnapshotPlace | None:
    settings = manifest.snapshots
    if settings is None:
        return None
    place = places.named("snapshots.location", settings.location, settings.params, secrets, token)
    return SnapshotPlace(place, await results(place), settings.on_failure)
