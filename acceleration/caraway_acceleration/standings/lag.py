"""The lag of accelerated datasets behind their sources, as values for users."""

from dataclasses import dataclass
from datetime import UTC, datetime

from caraway_acceleration.accelerated import Accelerated
from caraway_acceleration.versions import making
from caraway_acceleration.versions.version import DatasetVersion
from caraway_core.ids import TableName
from caraway_scheduler.coordination.schedule import Timetable

_LATE_S = 60.0
"""A dataset that follows its source is late after this time."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The age of the rows that statements read, compared with their source.

    `behind_s` is the age of the source's state that they show. It is None if this process cannot
    know it: producers send the changes, or another scheduler follows the source. Rows are late if
    refreshes were missed, or if changes take more than a minute.
    """

    behind_s: float | None
    last_change_at: datetime
    is_late: bool = False


def lag_of(kept: Accelerated) -> Lag | None:
    """Return the lag of a dataset, or None if statements read no version of it yet."""
    version, now = kept.current.shown, kept.current.clock()
    if version is None:
        return None
    if kept.feed is None:
        return of_refreshes(version, kept.plan.timetable, now)
    behind_s = kept.following.behind_s if kept.following is not None else None
    changed_at = last_change_at(version, kept.plan.name)
    return Lag(behind_s, changed_at, behind_s is not None and behind_s > _LATE_S)


def of_refreshes(version: DatasetVersion, timetable: Timetable, now: datetime) -> Lag:
    """Return the lag of a dataset that is refreshed: late if two refreshes were due since."""
    due = timetable.after(version.made_at, 1.0)
    missed = timetable.after(due, 1.0) if due is not None else None
    behind_s = max(0.0, (now - version.made_at).total_seconds())
    return Lag(behind_s, version.made_at, missed is not None and missed < now)


def last_change_at(version: DatasetVersion, name: TableName) -> datetime:
    """Return when the last change was applied; after a compaction, a time soon after it."""
    if version.read_log and (made_ms := version.read_log[-1].made_ms):
        return datetime.fromtimestamp(made_ms / 1_000, UTC)
    return making.made_at(version.key, name) or version.made_at
