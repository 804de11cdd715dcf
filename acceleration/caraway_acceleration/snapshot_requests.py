"""Requests for the snapshots of datasets: which exist, and which one is the current one."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from caraway_acceleration.accelerated import Accelerated
from caraway_acceleration.upkeep.snapshots import DatasetSnapshots, SnapshotInfo
from caraway_acceleration.upkeep.snapshotting import OnFailure, Snapshotting
from caraway_acceleration.versions.current_version import CurrentVersion
from caraway_acceleration.versions.making import VersionMaker
from caraway_core.errors import DeadlineError, InvalidRequestError
from caraway_core.ids import TableName
from caraway_core.manifest.values.acceleration import Acceleration
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.results import ResultStore
from caraway_core.tables import ResultPlace

logger = logging.getLogger(__name__)
_MOST_S = 600.0


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """The place of snapshots, and what to do if a dataset cannot start from its snapshot."""

    place: ResultPlace
    store: ResultStore
    on_failure: OnFailure

    @property
    def title(self) -> str:
        """The place as clients see it: without the folders of this machine."""
        if self.place.store is None:
            return f"file:{self.place.path.rpartition('/')[2]}"
        return self.place.title


class NoSnapshotsError(InvalidRequestError):
    """The dataset has no snapshots, because the manifest does not ask for any."""


class SnapshotRequests:
    """Answers requests for the snapshots of accelerated datasets."""

    def __init__(
        self, find: Callable[[TableName], Accelerated], place: SnapshotPlace | None
    ) -> None:
        """Create it; `find` raises where there is no such accelerated dataset."""
        self._find = find
        self.place = place

    async def listed(self, name: TableName, limit: int) -> tuple[SnapshotInfo, ...]:
        """Return the last snapshots of a dataset; raises as `info` does."""
        return await self._snapshotting(self._find(name)).store.listed(limit)

    async def info(self, name: TableName, number: int) -> SnapshotInfo:
        """Return a snapshot of a dataset.

        Raises:
            NoDatasetError, NotAcceleratedError: there is no such accelerated dataset.
            NoSnapshotsError: it has no snapshots.
            NotFoundError: it has none of this number, or not any more.
            CarawayError: the store of the snapshots cannot be read.
        """
        return await self._snapshotting(self._find(name)).store.info(number)

    async def choose(self, name: TableName, number: int) -> None:
        """Have a dataset read from a snapshot; raises as `info` and `Snapshotting.choose` do.

        Raises:
            InvalidRequestError: its rows come as changes.
            DeadlineError: it took too long.
        """
        kept = self._find(name)
        snapshotting = self._snapshotting(kept)
        if kept.feed is not None:
            raise InvalidRequestError(
                f"dataset '{name}' takes changes, which would be missing after a snapshot is "
                "read: its refresh_mode must not be 'changes'"
            )
        try:
            async with asyncio.timeout(_MOST_S):
                await snapshotting.choose(number)
        except TimeoutError as exc:
            raise DeadlineError(
                f"dataset '{name}': the snapshot {number} could not be read within {_MOST_S:g} s"
            ) from exc
        kept.refresher.moved()

    def _snapshotting(self, kept: Accelerated) -> Snapshotting:
        if kept.snapshotting is None:
            raise NoSnapshotsError(
                f"dataset '{kept.plan.name}' has no snapshots: set its acceleration.snapshots, "
                "and snapshots.location of the manifest"
            )
        return kept.snapshotting


def snapshotting_of(
    current: CurrentVersion,
    acceleration: Acceleration,
    place: SnapshotPlace | None,
    dispatch: Dispatch,
) -> Snapshotting | None:
    """Return what writes snapshots of a dataset and starts it from them, if it is wanted."""
    settings = acceleration.snapshots
    if settings.use == "disabled":
        return None
    if place is None:
        logger.warning(
            "no snapshots are written: the manifest has no snapshots.location",
            extra={"dataset": current.name},
        )
        return None
    maker = VersionMaker(dispatch, place.place)
    store = DatasetSnapshots(current, maker, place.store, settings.keep)
    return Snapshotting(current, store, settings, place.on_failure)
