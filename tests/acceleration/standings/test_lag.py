"""The lag of accelerated datasets behind their sources."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from caraway_acceleration.standings import lag
from caraway_acceleration.versions import making
from caraway_acceleration.versions.version import DatasetVersion, VersionPart
from caraway_core.changes import LogEntry
from caraway_core.ids import TableName
from caraway_core.protocols.results import ChunkInfo
from caraway_scheduler.coordination.schedule import Interval, Timetable

NAME = TableName("orders")
MADE_AT = datetime(2026, 11, 27, 8, tzinfo=UTC)
HOURLY = Timetable(Interval(3_600))


def version(key: str = "k") -> DatasetVersion:
    return DatasetVersion(1, (VersionPart(key, pa.schema([]), ()),), "here", MADE_AT, "", "")


@pytest.mark.parametrize(
    ("timetable", "hours", "is_late"),
    [(HOURLY, 1.9, False), (HOURLY, 2.1, True), (Timetable(), 999, False)],
)
def test_rows_are_late_if_two_refreshes_were_missed(
    timetable: Timetable, hours: float, is_late: bool
) -> None:
    found = lag.of_refreshes(version(), timetable, MADE_AT + timedelta(hours=hours))
    assert found == lag.Lag(hours * 3_600, MADE_AT, is_late)


def test_a_clock_that_goes_back_gives_no_negative_lag() -> None:
    assert lag.of_refreshes(version(), HOURLY, MADE_AT - timedelta(hours=1)).behind_s == 0


def test_the_last_change_is_that_of_the_log_that_is_read() -> None:
    chunk = ChunkInfo(0, 1, 1, "", "", "k")
    entries = (LogEntry(chunk, 5_000), LogEntry(chunk, 9_000))
    changed = replace(version(), log=entries)
    assert lag.last_change_at(changed, NAME) == datetime.fromtimestamp(9, UTC)
    assert lag.last_change_at(replace(changed, pending=1), NAME) == datetime.fromtimestamp(5, UTC)


def test_after_a_compaction_the_last_change_is_its_time() -> None:
    key = making.key_of(NAME)
    assert lag.last_change_at(version(key), NAME) == making.made_at(key, NAME)
    assert lag.last_change_at(version("of another release"), NAME) == MADE_AT
