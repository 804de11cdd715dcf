"""The state of accelerated datasets, as values for users."""

from dataclasses import dataclass

from caraway_acceleration.accelerated import Accelerated
from caraway_acceleration.refresh.refreshing import RefreshState
from caraway_acceleration.standings.lag import Lag, lag_of
from caraway_acceleration.versions.making import StoredSize
from caraway_acceleration.versions.version import DatasetVersion
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
    rows_per_s: float = 0.0
    """The rate at which the running refresh reads rows, on average."""
    lag: Lag | None = None

    @property
    def progress(self) -> str:
        """The progress of loading, in words; empty if nothing is loaded."""
        if not self.is_loading:
            return ""
        rate = f", {self.rows_per_s:,.0f} rows/s" if self.rows_per_s else ""
        return f"{self.stored.rows:,} rows{rate}"

    @property
    def is_loading(self) -> bool:
        """True if a refresh or the first load of a followed source is in progress."""
        if self.refreshes.running is not None:
            return True
        # Rows that a failed refresh has read are not loaded.
        return self.changing is not None and self.version is None and self.stored.rows > 0


def of(kept: Accelerated, state: DatasetState) -> DatasetStanding:
    """Return the state of an accelerated dataset."""
    refresher, feed, changing = kept.refresher, kept.feed, None
    if feed is not None:
        changing = Changing(feed.applied, feed.waiting, kept.compactor.compactions)
    refreshes = refresher.state
    of_source = state.error.message if state.error is not None else ""
    error = refreshes.error or refreshes.damaged or of_source
    stored, rows_per_s = refresher.stored, 0.0
    if refreshes.running is not None and refresher.elapsed_s:
        rows_per_s = stored.rows / refresher.elapsed_s
    held = kept.current.ours
    if feed is not None and held is not None and refresher.version is None:
        # The log has the rows of a followed source that have come, but are not read yet.
        chunks = [entry.chunk for entry in held.version.log]
        rows = sum(chunk.row_count for chunk in chunks)
        stored = StoredSize(rows, sum(chunk.size_bytes for chunk in chunks))
    return DatasetStanding(
        refreshes,
        state.status,
        error,
        refresher.version,
        stored,
        changing,
        rows_per_s,
        lag_of(kept),
    )
