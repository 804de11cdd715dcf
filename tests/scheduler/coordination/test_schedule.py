"""The times of refreshes: intervals, cron expressions, jitter, and starts."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_scheduler.coordination.schedule import Cron, Interval, Timetable

NOW = datetime(2026, 11, 4, 10, 30, tzinfo=UTC)  # a Wednesday
HOUR = timedelta(hours=1)
HOURLY = Interval(3600)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("* * * * *", "2026-11-04T10:31"),
        ("30 10 * * *", "2026-11-05T10:30"),
        ("*/20 * * * *", "2026-11-04T10:40"),
        ("5-10,50 * * * *", "2026-11-04T10:50"),
        ("10-40/15 11 * * *", "2026-11-04T11:10"),
        ("0 3 * * MON-FRI", "2026-11-05T03:00"),
        ("0 3 * jan,mar sun", "2027-01-03T03:00"),
        ("0 0 * * 7", "2026-11-08T00:00"),
        ("0 0 1 * *", "2026-12-01T00:00"),
        ("0 0 13 * FRI", "2026-11-06T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
    ],
)
def test_cron_expressions(expression: str, expected: str) -> None:
    assert Cron(expression).next_after(NOW) == datetime.fromisoformat(expected + "+00:00")


def test_cron_is_in_utc_whatever_the_zone_of_the_moment() -> None:
    moment = NOW.astimezone(timezone(timedelta(hours=5, minutes=45)))
    due = Cron("0 12 * * *").next_after(moment)
    assert (due, due.utcoffset()) == (datetime(2026, 11, 4, 12, tzinfo=UTC), timedelta(0))


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("60 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("5-1 * * * *", "minute"),
        (", * * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 0 0 * *", "day-of-month"),
        ("0 0 31 2 *", "day-of-month"),
        ("0 0 * 13 *", "month"),
        ("0 0 * MAY-SOON *", "month"),
        ("0 0 * * 8", "day-of-week"),
        ("0 0 * * ²L", "day-of-week"),
        ("0 0 * * FOO", "day-of-week"),
    ],
)
def test_a_bad_expression_says_which_field(expression: str, field: str) -> None:
    with pytest.raises(ValueError, match=f"is not a cron expression: its {field} is invalid"):
        Cron(expression)


@pytest.mark.parametrize("expression", ["", "@daily", "* * * *", "0 * * * * *", "1," * 200])
def test_an_expression_has_five_fields(expression: str) -> None:
    with pytest.raises(ValueError, match="it needs five"):
        Cron(expression)


ATOMS = st.sampled_from(["*", "1", "5", "31", "0", "L", "LW", "MON", "feb", "²", "?", ""])
TERMS = st.lists(st.tuples(ATOMS, st.sampled_from(["", ",", "-", "/", "#", " "])), max_size=4)


@given(st.lists(TERMS.map(lambda term: "".join(a + b for a, b in term)), min_size=5, max_size=5))
def test_any_text_is_an_expression_or_a_value_error(fields: list[str]) -> None:
    try:
        cron = Cron(" ".join(fields))
    except ValueError:
        return
    assert cron.next_after(NOW) > NOW


@pytest.mark.parametrize("period_s", [0, -1, float("nan")])
def test_an_interval_is_above_zero(period_s: float) -> None:
    with pytest.raises(ValueError, match="not above zero"):
        Interval(period_s)


def test_an_interval_counts_from_the_end_of_the_refresh_before() -> None:
    assert Timetable(HOURLY).after(NOW, 0.9) == NOW + HOUR


def test_without_a_schedule_nothing_is_due() -> None:
    assert Timetable().after(NOW, 0.5) is None
    assert Timetable().first(NOW, NOW - HOUR, 0.5) is None


def test_jitter_is_a_tenth_of_the_time_between_two_refreshes_or_what_was_set() -> None:
    half = 0.5
    assert Timetable(HOURLY, jitter_max_s=None).after(NOW, half) == NOW + 1.05 * HOUR
    assert Timetable(HOURLY, jitter_max_s=7200).after(NOW, half) == NOW + 2 * HOUR
    daily = Timetable(Cron("30 10 * * *"), jitter_max_s=None)
    assert daily.after(NOW, half) == NOW + 25.2 * HOUR


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 10**6))
def test_jitter_only_delays_and_is_bounded(chance: float, jitter_max_s: float) -> None:
    due = Timetable(HOURLY, jitter_max_s=jitter_max_s).after(NOW, chance)
    assert due is not None
    assert NOW + HOUR <= due <= NOW + HOUR + timedelta(seconds=jitter_max_s)


@pytest.mark.parametrize("schedule", [None, HOURLY, Cron("0 3 * * *")])
def test_a_start_refreshes_at_once_without_data_or_if_configured(
    schedule: Interval | Cron | None,
) -> None:
    assert Timetable(schedule).first(NOW, None, 0.5) == NOW
    assert Timetable(schedule, on_startup="always").first(NOW, NOW - HOUR, 0.5) == NOW


def test_a_start_with_data_keeps_the_interval() -> None:
    timetable = Timetable(HOURLY)
    assert timetable.first(NOW, NOW - HOUR / 2, 0) == NOW + HOUR / 2
    assert timetable.first(NOW, NOW - 3 * HOUR, 0) == NOW
    # The clock of the process that refreshed it was ahead.
    assert timetable.first(NOW, NOW + 50 * HOUR, 0) == NOW + HOUR


def test_a_start_with_data_leaves_out_times_of_cron_that_passed() -> None:
    timetable = Timetable(Cron("0 3 * * *"))
    assert timetable.first(NOW, NOW - 48 * HOUR, 0) == datetime(2026, 11, 5, 3, tzinfo=UTC)
