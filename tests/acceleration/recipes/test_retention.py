"""Time column conditions, executed by the engine over every kind of column."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_acceleration.recipes import retention
from caraway_acceleration.recipes.retention import TimeColumn, TimeFormat
from caraway_core.tables import MemoryTable
from tests.kit import engine

HOUR = 3600.0
DAY = 24 * HOUR
NOW = datetime(2026, 11, 4, 10, 30, tzinfo=UTC)
# Ages in seconds before NOW; None is a row without a time. Most tests use a window of two hours.
AGES = (0.0, HOUR, 2 * HOUR, 2 * HOUR + 1, 25 * HOUR, 49 * HOUR, None, -10 * DAY)
FAR = datetime(9999, 12, 31, tzinfo=UTC)


def moments() -> list[datetime | None]:
    return [None if age is None else NOW - timedelta(seconds=age) for age in AGES]


def iso(moment: datetime | None, offset: int = 0) -> str | None:
    if moment is None:
        return None
    return (moment + timedelta(hours=offset)).replace(tzinfo=None).isoformat()


def numbers(per_s: int, type_: pa.DataType) -> pa.Array:
    return pa.array([m and int(m.timestamp() * per_s) for m in moments()], type_)


def timestamps(unit: str, zone: str | None = None) -> pa.Array:
    return pa.array(moments(), pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, zone))


def days() -> list[date | None]:
    return [m and m.date() for m in moments()]


INSTANTS: list[tuple[str, TimeFormat, pa.Array]] = [
    ("seconds", "timestamp", timestamps("s")),
    ("milliseconds", "timestamp", timestamps("ms")),
    ("microseconds", "timestamp", timestamps("us")),
    ("nanoseconds", "timestamp", timestamps("ns")),
    ("zoned", "timestamptz", timestamps("us", "UTC")),
    ("elsewhere", "timestamptz", timestamps("ms", "America/New_York")),
    ("zone-not-told", "timestamp", timestamps("us", "Asia/Kathmandu")),
    ("told-but-none", "timestamptz", timestamps("us")),
    ("unix-seconds", "unix_seconds", numbers(1, pa.int64())),
    ("short", "unix_seconds", numbers(1, pa.int32())),
    ("unsigned", "unix_seconds", numbers(1, pa.uint64())),
    ("unix-millis", "unix_millis", numbers(1000, pa.int64())),
    ("iso-utc", "ISO8601", pa.array([m and f"{iso(m)}Z" for m in moments()])),
    ("iso-offset", "ISO8601", pa.array([m and f"{iso(m, 2)}+02:00" for m in moments()])),
    ("iso-plain", "ISO8601", pa.array(list(map(iso, moments())), pa.large_string())),
    ("iso-view", "ISO8601", pa.array(list(map(iso, moments())), pa.string_view())),
    ("iso-dictionary", "ISO8601", pa.array(list(map(iso, moments()))).dictionary_encode()),
    ("iso-inferred", "ISO8601", timestamps("ns")),
]
DAYS: list[tuple[str, TimeFormat, pa.Array]] = [
    ("date", "date", pa.array(days(), pa.date32())),
    ("date64", "date", pa.array(days(), pa.date64())),
    ("text", "date", pa.array([day and day.isoformat() for day in days()])),
    ("timestamp", "date", timestamps("us")),
    ("by-default", "timestamp", pa.array(days(), pa.date32())),
    ("inferred", "ISO8601", pa.array(days(), pa.date32())),
]
EVERY = INSTANTS + DAYS


def named(cases: list[tuple[str, TimeFormat, pa.Array]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("time_format", "values"), [case[1:] for case in cases], ids=[case[0] for case in cases]
    )


def column_of(values: pa.Array, time_format: TimeFormat | None) -> TimeColumn:
    return retention.time_column(
        pa.schema([('the "time"', values.type)]), 'the "time"', time_format
    )


async def rows(values: pa.Array, condition: str) -> list[int]:
    """Return the rows for which a condition holds."""
    table = pa.table({'the "time"': values, "row": list(range(len(values)))})
    session = engine.session({"t": MemoryTable(table.schema, table)})
    found = await engine.rows(session, f"SELECT row FROM t WHERE {condition} ORDER BY row")
    return [row["row"] for row in found]


async def newest_of(values: pa.Array, column: TimeColumn) -> int | None:
    table = pa.table({'the "time"': values})
    session = engine.session({"t": MemoryTable(table.schema, table)})
    found = await engine.rows(session, f"SELECT {retention.newest(column)} AS tick FROM t")
    tick = found[0]["tick"]
    assert tick is None or isinstance(tick, int)
    return tick


@named(INSTANTS)
async def test_a_window_contains_rows_up_to_its_age(
    time_format: TimeFormat, values: pa.Array
) -> None:
    column = column_of(values, time_format)
    assert await rows(values, retention.window(column, 2 * HOUR, NOW)) == [0, 1, 2, 7]
    assert await rows(values, retention.expired(column, 2 * HOUR, NOW)) == [3, 4, 5]


@named(DAYS)
async def test_a_day_is_in_a_window_to_its_end(time_format: TimeFormat, values: pa.Array) -> None:
    column = column_of(values, time_format)
    assert await rows(values, retention.window(column, 2 * HOUR, NOW)) == [0, 1, 2, 3, 7]
    assert await rows(values, retention.window(column, 24 * HOUR, NOW)) == [0, 1, 2, 3, 4, 7]
    assert await rows(values, retention.expired(column, 24 * HOUR, NOW)) == [5]


@named(EVERY)
async def test_every_row_is_either_expired_or_kept(
    time_format: TimeFormat, values: pa.Array
) -> None:
    column = column_of(values, time_format)
    for period_s in (HOUR, 30 * HOUR, 90 * 365 * DAY):
        expired = retention.expired(column, period_s, NOW)
        gone, kept = await rows(values, expired), await rows(values, retention.kept(expired))
        assert sorted(gone + kept) == list(range(len(AGES)))
        assert 6 in kept


@named(EVERY)
async def test_an_append_loads_newer_rows(time_format: TimeFormat, values: pa.Array) -> None:
    column = column_of(values, time_format)
    loaded = pa.concat_arrays([values.slice(4, 3)])  # The ages of 25 and 49 hours, and no time.
    newest = await newest_of(loaded, column)
    assert newest is not None
    new = await rows(values, retention.since(column, newest))
    assert new == [0, 1, 2, 3, 7]
    overlapping = await rows(values, retention.since(column, newest, 24 * HOUR))
    assert overlapping == [0, 1, 2, 3, 4, 5, 7]
    both = retention.to_append(column, NOW, newest, 24 * HOUR, 2 * HOUR)
    assert both is not None
    is_day = column.step > 1 or column.type == "Date32"
    assert await rows(values, both) == ([0, 1, 2, 3, 7] if is_day else [0, 1, 2, 7])


@named(EVERY)
async def test_rows_without_times_have_no_newest(time_format: TimeFormat, values: pa.Array) -> None:
    column = column_of(values, time_format)
    assert await newest_of(pa.concat_arrays([values.slice(6, 1)]), column) is None
    assert retention.to_append(column, NOW, None, HOUR, None) is None
    within = retention.window(column, HOUR, NOW)
    assert retention.to_append(column, NOW, None, HOUR, HOUR) == within


async def test_nanoseconds_are_distinguished() -> None:
    values = pa.array([10**18, 10**18 + 1, 10**18 + 2], pa.timestamp("ns"))
    column = column_of(values, None)
    newest = await newest_of(values.slice(0, 2), column)
    assert newest == 10**18 + 1
    assert await rows(values, retention.since(column, newest)) == [2]


async def test_extreme_times_and_unreadable_strings_are_handled() -> None:
    far = pa.array([FAR, NOW, NOW - timedelta(days=9), None], pa.timestamp("us", "UTC"))
    text = pa.array(["9999-12-31T00:00:00Z", f"{NOW.isoformat()}", "soon", ""])
    condition = retention.expired(column_of(far, "timestamptz"), DAY, NOW)
    assert await rows(far, condition) == [2]
    assert await rows(far, retention.window(column_of(far, "timestamptz"), DAY, NOW)) == [0, 1]
    column = column_of(text, "ISO8601")
    assert await rows(text, retention.window(column, DAY, NOW)) == [0, 1]
    assert await rows(text, retention.expired(column, DAY, NOW)) == []
    dates = pa.array(["2026-11-04", "2026-13-01", "yesterday"])
    assert await rows(dates, retention.window(column_of(dates, "date"), DAY, NOW)) == [0]


@pytest.mark.parametrize(
    ("type_", "time_format", "needs"),
    [
        (pa.string(), None, "time_format timestamp needs a column of timestamps or dates"),
        (pa.int64(), "timestamptz", "needs a column of timestamps or dates"),
        (pa.float64(), "unix_seconds", "needs a column of whole numbers"),
        (pa.timestamp("s"), "unix_millis", "needs a column of whole numbers"),
        (pa.int64(), "ISO8601", "needs a column of strings, timestamps or dates"),
        (pa.bool_(), "date", "needs a column of dates, timestamps or strings"),
    ],
)
def test_a_column_that_does_not_fit_is_named(
    type_: pa.DataType, time_format: TimeFormat | None, needs: str
) -> None:
    with pytest.raises(ValueError, match=needs) as failed:
        retention.time_column(pa.schema([("at", type_)]), "at", time_format)
    assert f"time_column 'at' is {type_}" in str(failed.value)


def test_a_column_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match=r"time_column 'at' does not exist.*: id, name"):
        retention.time_column(pa.schema([("id", pa.int64()), ("name", pa.string())]), "at", None)


@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_a_moment_is_within_its_tick_and_its_day(moment: datetime, unit: str) -> None:
    microseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    column = column_of(pa.array([], pa.timestamp(unit)), None)
    tick, exact = column.ticks(moment), microseconds * column.ticks_per_s / 10**6
    assert tick <= exact < tick + 1
    daily = column_of(pa.array([], pa.timestamp(unit)), "date")
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    assert daily.ticks(moment) == column.ticks(midnight)
