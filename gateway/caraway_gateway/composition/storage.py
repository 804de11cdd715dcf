"""The storage that outlives a scheduler: the state store, and the places for chunks.

The settings of the manifest name the place of results.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from caraway_acceleration.snapshot_requests import SnapshotPlace
from caraway_core.errors import CarawayError
from caraway_core.loading import registry
from caraway_core.manifest import Manifest, RuntimeSettings, SecretResolver
from caraway_core.manifest.texts.locations import STORE, split
from caraway_core.process.data_directory import DataDirectory
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.state import StateStore
from caraway_core.tables import ResultPlace
from caraway_gateway.composition import state
from caraway_gateway.composition.backend import Backend

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
    place = find_place(settings, secrets, data.path / "results", backend.token)
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
    return find_named_place(
        "runtime.iceberg.location", iceberg_settings.location, iceberg_settings.params, secrets
    )


async def _snapshots(
    manifest: Manifest, secrets: SecretResolver, token: str
) -> SnapshotPlace | None:
    settings = manifest.snapshots
    if settings is None:
        return None
    place = find_named_place(
        "snapshots.location", settings.location, settings.params, secrets, token
    )
    return SnapshotPlace(place, await results(place), settings.on_failure)


class _Finder(Protocol):
    """A function of the registry that resolves a location to a result place."""

    def __call__(self, scheme: str, path: str, params: Mapping[str, str]) -> ResultPlace: ...


def find_place(
    settings: RuntimeSettings, secrets: SecretResolver, default: Path, token: str = ""
) -> ResultPlace:
    """Return the place that `runtime.scheduler` names, or the folder `default`.

    Nothing is contacted or created here; the first use shows whether the place works. `token` is
    the cluster's token, which its own chunk store requires.

    Raises:
        CarawayError: the location or its params are invalid, or a secret is missing.
    """
    text = settings.scheduler.state_location
    if text is None:
        return ResultPlace("file", str(default.absolute()))
    key, params = "runtime.scheduler.state_location", settings.scheduler.params
    return find_named_place(key, text, params, secrets, token)


def find_named_place(
    key: str, text: str, params: Mapping[str, str], secrets: SecretResolver, token: str = ""
) -> ResultPlace:
    """Return the place that a key of the manifest names.

    Raises:
        CarawayError: the location or its params are invalid, or a secret is missing.
    """
    try:
        location = split(text)
        filled = dict(secrets.expand_all(params))
        if location.scheme == STORE and token:
            filled.setdefault("token", token)
        find: _Finder = registry.RESULT_PLACES.load(location.scheme)
        return find(location.scheme, location.path, filled)
    except ValueError as exc:
        raise CarawayError(f"{key}: {exc}") from exc
    except CarawayError as exc:
        raise CarawayError(f"{key} '{text}': {exc.message}") from exc
