"""Which rows of a dataset are loaded, and which are too old, as SQL conditions on its time column.

A point in time is written as a whole number of ticks of the column's own kind, so nothing is lost
to rounding and nothing overflows on the way to a common type. A tick counts as long as any part of
it does: of dates, the whole day. Times without a zone are UTC. A row without a time, or with one
that cannot be read, is in no window and is never too old.
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
    "ISO8601": "a column of texts, timestamps or dates",
    "date": "a column of dates, timestamps or texts",
}


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """How a time column is compared.

    `sql` is what to compare, `type` the Arrow type of a point in time beside it (empty: a plain
    number), `ticks_per_s` its resolution, and `step` the ticks that are never told apart.
    """

    sql: str
    type: str
    ticks_per_s: Fraction
    step: int = 1

    def ticks(self, moment: datetime) -> int:
        """Return the tick that the moment is in."""
        microseconds = (moment - _EPOCH) // timedelta(microseconds=1)
        ticks = microseconds * self.ticks_per_s // 10**6
        return ticks - ticks % self.step

    def point(self, ticks: int) -> str:
        """Write a tick as SQL."""
        return f"arrow_cast({ticks}, '{self.type}')" if self.type else str(ticks)


def time_column(schema: pa.Schema, name: str, time_format: TimeFormat | None) -> TimeColumn:
    """Find how the column of a `time_column` and a `time_format` (`timestamp`) is compared.

    Raises:
        ValueError: there is no such column, or its type does not fit the format.
    """
    if schema.get_field_index(name) < 0:
        known = ", ".join(schema.names)
        raise ValueError(f"time_column '{name}' is not there, or twice; columns are: {known}")
    type_, time_format = schema.field(name).type, time_format or "timestamp"
    found = _comparison('"' + name.replace('"', '""') + '"', type_, time_format)
    if found is None:
        raise ValueError(
            f"time_column '{name}' is {type_}, but time_format {time_format} needs "
            f"{_NEEDS[time_format]}"
        )
    return found


def window(column: TimeColumn, period_s: float, now: datetime) -> str:
    """Write the condition of rows that are not older than the period: `refresh_data_window`."""
    return f"{column.sql} >= {_cutoff(column, period_s, now)}"


def expired(column: TimeColumn, period_s: float, now: datetime) -> str:
    """Write the condition of rows that are older than the period: `retention_period`."""
    return f"{column.sql} < {_cutoff(column, period_s, now)}"


def kept(condition: str) -> str:
    """Write the condition of all rows that one for deletion leaves, unknown answers among them."""
    return f"({condition}) IS NOT TRUE"


def newest(column: TimeColumn) -> str:
    """Write the aggregate that finds the newest tick that is loaded, as `since` takes it."""
    greatest = f"max({column.sql})"
    if column.type == "Date32":
        # Dates of 64 bits count milliseconds.
        return f"CAST(CAST(arrow_cast({greatest}, 'Date32') AS INT) AS BIGINT)"
    return f"CAST({greatest} AS BIGINT)"


def since(column: TimeColumn, newest_tick: int, overlap_s: float = 0) -> str:
    """Write the condition of rows to append: `refresh_append_overlap` before the newest, and on.

    With an overlap rows come again; a primary key tells them. Without one a row as old as the
    newest is taken for one that is there.
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
    """Write the condition of rows that an append loads; None for all.

    Without a row that has a time there is nothing to append to, and the window alone counts.
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
    # Texts that cannot be read become NULL; with nanoseconds also those of the year 9999 would.
    if time_format == "ISO8601":
        return TimeColumn(f"arrow_try_cast({sql}, '{_READ_AS}')", _READ_AS, Fraction(10**6))
    if time_format == "date":
        return TimeColumn(f"arrow_try_cast({sql}, 'Date32')", "Date32", Fraction(1, _DAY_S))
    return None


def _is_text(type_: pa.DataType) -> bool:
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    return type_ in (pa.string(), pa.large_string(), pa.string_view())
