"""The state of accelerated datasets, as values for users."""

from dataclasses import dataclass

from caraway_scheduler.acceleration.refresh.refreshing import RefreshState
from caraway_scheduler.acceleration.versions.making import StoredSize
from caraway_scheduler.acceleration.versions.version import DatasetVersion


@dataclass(frozen=True, slots=True)
class Changing:
    """Statistics of the changes to a dataset in this process."""

    applied: int
    waiting: int
    compactions: int


@dataclass(frozen=True, slots=True)
class DatasetStanding:
    """The state of an accelerated dataset, for users."""

    refreshes: RefreshState
    version: DatasetVersion | None
    stored: StoredSize
    changing: Changing | None = None
