"""Writes time windows and retention as SQL conditions on the time column of a dataset.

A point in time is written as an integer number of ticks in the column's own unit. So nothing is
rounded, and no conversion overflows. A row stays in a window until its whole tick has passed; for
dates, that is the whole day. Times without a zone are UTC. Rows without a readable time are in no
window and never expire.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Literal

import pyarrow as pa

TimeFormat = Literal["timestamp", "timestamptz", "unix_seconds", "unix_millis", "ISO8601", "date"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400
_UNITS = {
    "s": ("Second", 1),
    "ms": ("Millisecond", 10**3),
    "us": ("Microsecond", 10**6),
    "ns": ("Nanosecond", 10**9),
}
_READ_AS = 'Timestamp(Microsecond, Some("UTC"))'
_NEEDS = {
    "timestamp": "a column of timestamps or dates",
    "timestamptz": "a column of timestamps or dates",
    "unix_seconds": "a column of whole numbers",
    "unix_millis": "a column of whole numbers",
    "ISO8601": "a column of strings, timestamps or dates",
    "date": "a column of dates, timestamps or strings",
}


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """The comparison of a time column.

    `sql` is the expression to compare. `type` is the Arrow type of the other side, or empty for a
    plain number. `ticks_per_s` is the resolution, and `step` the number of ticks that count as
    equal.
    """

    sql: str
    type: str
    ticks_per_s: Fraction
    step: int = 1

    def ticks(self, moment: datetime) -> int:
        """Return the tick that contains the moment."""
        microseconds = (moment - _EPOCH) // timedelta(microseconds=1)
        ticks = microseconds * self.ticks_per_s // 10**6
        return ticks - ticks % self.step

    def point(self, ticks: int) -> str:
        """Return a tick as an SQL expression."""
        return f"arrow_cast({ticks}, '{self.type}')" if self.type else str(ticks)


def time_column(schema: pa.Schema, name: str, time_format: TimeFormat | None) -> TimeColumn:
    """Return how a column is compared, for its `time_column` and `time_format` settings.

    Raises:
        ValueError: the column does not exist, or its type does not fit the format.
    """
    if schema.get_field_index(name) < 0:
        known = ", ".join(schema.names)
        raise ValueError(
            f"time_column '{name}' does not exist, or exists twice; columns are: {known}"
        )
    type_, time_format = schema.field(name).type, time_format or "timestamp"
    column = _comparison('"' + name.replace('"', '""') + '"', type_, time_format)
    if column is None:
        raise ValueError(
            f"time_column '{name}' is {type_}, but time_format {time_format} needs "
            f"{_NEEDS[time_format]}"
        )
    return column


def window(column: TimeColumn, period_s: float, now: datetime) -> str:
    """Return the condition for rows within the period: `refresh_data_window`."""
    return f"{column.sql} >= {_cutoff(column, period_s, now)}"


def expired(column: TimeColumn, period_s: float, now: datetime) -> str:
    """Return the condition for rows older than the period: `retention_period`."""
    return f"{column.sql} < {_cutoff(column, period_s, now)}"


def kept(condition: str) -> str:
    """Return the condition for rows that a deletion keeps, including those with a NULL result."""
    return f"({condition}) IS NOT TRUE"


def newest(column: TimeColumn) -> str:
    """Return the aggregate for the newest loaded tick, which `since` takes."""
    greatest = f"max({column.sql})"
    if column.type == "Date32":
        # 64-bit dates count milliseconds.
        return f"CAST(CAST(arrow_cast({greatest}, 'Date32') AS INT) AS BIGINT)"
    return f"CAST({greatest} AS BIGINT)"


def since(column: TimeColumn, newest_tick: int, overlap_s: float = 0) -> str:
    """Return the condition for rows to append, from `refresh_append_overlap` before the newest on.

    With an overlap, rows are read again and recognised by their primary key. Without one, a row as
    old as the newest counts as already loaded.
    """
    if overlap_s <= 0:
        return f"{column.sql} > {column.point(newest_tick)}"
    overlap = -(-Fraction(overlap_s) * column.ticks_per_s // 1)
    return f"{column.sql} >= {column.point(newest_tick - int(overlap))}"


def to_append(
    column: TimeColumn,
    now: datetime,
    newest_tick: int | None,
    overlap_s: float,
    window_s: float | None,
) -> str | None:
    """Return the condition for the rows of an append; None for all rows.

    If no loaded row has a time, only the window applies.
    """
    conditions = [] if newest_tick is None else [since(column, newest_tick, overlap_s)]
    if window_s is not None:
        conditions.append(window(column, window_s, now))
    return " AND ".join(conditions) or None


def _cutoff(column: TimeColumn, period_s: float, now: datetime) -> str:
    return column.point(column.ticks(now - timedelta(seconds=period_s)))


def _comparison(sql: str, type_: pa.DataType, time_format: TimeFormat) -> TimeColumn | None:
    types = pa.types
    if time_format in ("unix_seconds", "unix_millis"):
        per_s = 1 if time_format == "unix_seconds" else 1000
        return TimeColumn(sql, "", Fraction(per_s)) if types.is_integer(type_) else None
    if types.is_date(type_):
        return TimeColumn(sql, "Date32", Fraction(1, _DAY_S))
    if types.is_timestamp(type_):
        unit, per_s = _UNITS[type_.unit]
        zone = 'Some("UTC")' if type_.tz else "None"
        step = per_s * _DAY_S if time_format == "date" else 1
        return TimeColumn(sql, f"Timestamp({unit}, {zone})", Fraction(per_s), step)
    if not _is_text(type_):
        return None
    # Unreadable strings become NULL. With nanoseconds, so would the year 9999.
    if time_format == "ISO8601":
        return TimeColumn(f"arrow_try_cast({sql}, '{_READ_AS}')", _READ_AS, Fraction(10**6))
    if time_format == "date":
        return TimeColumn(f"arrow_try_cast({sql}, 'Date32')", "Date32", Fraction(1, _DAY_S))
    return None


def _is_text(type_: pa.DataType) -> bool:
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    return type_ in (pa.string(), pa.large_string(), pa.string_view())
