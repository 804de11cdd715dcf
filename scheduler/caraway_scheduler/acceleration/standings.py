"""The state of accelerated datasets, as values for users."""

from dataclasses import dataclass

from caraway_scheduler.acceleration.accelerated import Accelerated
from caraway_scheduler.acceleration.refresh.refreshing import RefreshState
from caraway_scheduler.acceleration.versions.making import StoredSize
from caraway_scheduler.acceleration.versions.version import DatasetVersion
from caraway_scheduler.catalog.states import DatasetState, Status


@dataclass(frozen=True, slots=True)
class Changing:
    """Statistics of the changes to a dataset in this process."""

    applied: int
    waiting: int
    compactions: int


@dataclass(frozen=True, slots=True)
class DatasetStanding:
    """The state of an accelerated dataset, for users; `status` is that of the listing of datasets.

    `error` is also the reason why the last refresh failed of a dataset that has rows.
    """

    refreshes: RefreshState
    status: Status
    error: str
    version: DatasetVersion | None
    stored: StoredSize
    changing: Changing | None = None


def of(kept: Accelerated, state: DatasetState) -> DatasetStanding:
    """Return the state of an accelerated dataset."""
    refresher, feed, changing = kept.refresher, kept.feed, None
    if feed is not None:
        changing = Changing(feed.applied, feed.waiting, kept.compactor.compactions)
    refreshes = refresher.state
    of_source = state.error.message if state.error is not None else ""
    error = refreshes.error or refreshes.damaged or of_source
    return DatasetStanding(
        refreshes, state.status, error, refresher.version, refresher.stored, changing
    )
