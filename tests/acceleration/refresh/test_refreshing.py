"""One dataset's refreshes: each event, and invariants after any sequence of events."""

from dataclasses import replace

import pytest

from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh import refreshing
from caraway_acceleration.refresh.backoff import DELAYS, Retries
from caraway_acceleration.refresh.overrides import RefreshOverrides
from caraway_acceleration.refresh.refresh_events import (
    BeginRun,
    Event,
    RefreshSettings,
    RetryIn,
    RunNumber,
    ScheduleNext,
    ShowVersion,
    StopRun,
)
from caraway_acceleration.refresh.refreshing import RefreshRefusedError
from tests.acceleration.refresh.refreshes import FULL, LOADED, NEW, ONE, SOME, TWO, after


def test_a_refresh_begins_and_moves_readers_at_its_end() -> None:
    state, effects = after(LOADED, events.Due())
    assert effects == [BeginRun(ONE, "full", None, 0)]
    assert (state.running is not None, state.version) == (True, 7)
    state, effects = after(state, events.Succeeded(ONE, 8))
    assert effects == [ShowVersion(8), ScheduleNext()]
    assert (state.version, state.running) == (8, None)


def test_requests_during_a_refresh_become_one_with_the_last_overrides() -> None:
    jittered = replace(SOME, refresh_jitter_max_s=10)
    state, effects = after(
        LOADED, events.Due(), events.RefreshAsked(FULL), events.RefreshAsked(jittered, 0.5)
    )
    assert effects == []
    state, effects = after(state, events.Succeeded(ONE, 8))
    assert effects == [ShowVersion(8), BeginRun(TWO, "full", SOME.refresh_sql, 5, has_own_sql=True)]
    state, effects = after(state, events.Succeeded(TWO, 9))
    assert effects == [ShowVersion(9), ScheduleNext()]


@pytest.mark.parametrize("end", [events.RunFailed(ONE, "gone"), events.RunCancelled(ONE)])
def test_a_failed_refresh_lets_the_waiting_one_start(end: Event) -> None:
    state, effects = after(LOADED, events.RefreshAsked(), events.RefreshAsked(SOME), end)
    assert effects == [BeginRun(TWO, "full", SOME.refresh_sql, 0, has_own_sql=True)]
    assert state.version == 7


def test_moved_parents_begin_a_refresh_or_one_after_that_which_runs() -> None:
    state, effects = after(LOADED, events.ParentsMoved())
    assert effects == [BeginRun(ONE, "full", None, 0.0, is_following=True)]
    state, effects = after(state, events.ParentsMoved(), events.ParentsMoved())
    assert effects == []
    state, effects = after(state, events.Succeeded(ONE, 8))
    assert effects[-1] == BeginRun(TWO, "full", None, 0.0, is_following=True)
    state, effects = after(state, events.RunFailed(TWO, "away"))
    assert state.version == 8 and state.running is None


def test_moved_parents_leave_a_requested_refresh_as_it_is() -> None:
    asked = events.RefreshAsked(SOME)
    state, _ = after(LOADED, events.RefreshAsked(), asked, events.ParentsMoved())
    assert state.waiting is not None and state.waiting.overrides == SOME
    disabled = replace(LOADED, settings=events.RefreshSettings(refresh_mode="disabled"))
    assert after(disabled, events.ParentsMoved()) == (disabled, [])


def test_a_failed_refresh_keeps_the_old_version_and_its_reason_and_is_tried_again() -> None:
    state, effects = after(LOADED, events.Due(), events.RunFailed(ONE, "no such bucket"))
    assert effects == [RetryIn(ONE, DELAYS.delay_s(1)), ScheduleNext()]
    assert (state.version, state.error, refreshing.status(state)) == (7, "no such bucket", "ready")
    state, effects = after(state, events.RetryDue(ONE))
    assert effects == [BeginRun(TWO, "full", None, 0)]
    state, effects = after(state, events.RunFailed(TWO, "still none", 0.5))
    assert effects == [RetryIn(TWO, DELAYS.delay_s(2, 0.5)), ScheduleNext()]
    state, _ = after(state, events.RetryDue(TWO), events.Succeeded(RunNumber(3), 8))
    assert (state.error, state.failures, state.retry) == ("", 0, None)


def test_a_retry_keeps_the_overrides() -> None:
    failed = after(LOADED, events.RefreshAsked(SOME), events.RunFailed(ONE, "gone"))[0]
    assert after(failed, events.RetryDue(ONE))[1] == [
        BeginRun(TWO, "full", SOME.refresh_sql, 0, has_own_sql=True)
    ]


def test_retries_of_a_refresh_are_bounded() -> None:
    state = replace(LOADED, settings=RefreshSettings(retries=Retries(max_attempts=1)))
    state, _ = after(state, events.Due(), events.RunFailed(ONE, "gone"), events.RetryDue(ONE))
    state, effects = after(state, events.RunFailed(TWO, "gone"))
    assert (effects, state.retry) == ([ScheduleNext()], None)


@pytest.mark.parametrize("event", [events.Due(), events.RefreshAsked()])
def test_a_started_refresh_replaces_a_retry(event: Event) -> None:
    failed = after(LOADED, events.RefreshAsked(SOME), events.RunFailed(ONE, "gone"))[0]
    state, effects = after(failed, event)
    assert effects == [BeginRun(TWO, "full", None, 0)]
    assert after(state, events.RetryDue(ONE)) == (state, [])
    # The delays keep growing, because the source is still broken.
    effects = after(state, events.RunFailed(TWO, "gone"))[1]
    assert effects == [RetryIn(TWO, DELAYS.delay_s(2)), ScheduleNext()]


@pytest.mark.parametrize(
    "late",
    [
        events.Succeeded(ONE, 99),
        events.RunFailed(ONE, "late"),
        events.RunCancelled(ONE),
        events.Due(),
        events.RetryDue(ONE),
        events.VersionSeen(5),
    ],
)
def test_late_events_are_ignored(late: Event) -> None:
    state, _ = after(LOADED, events.RefreshAsked(), events.RunCancelled(ONE), events.RefreshAsked())
    assert after(state, late) == (state, [])


def test_readers_follow_versions_of_others_but_never_back() -> None:
    state, effects = after(LOADED, events.VersionSeen(9))
    assert (state.version, effects) == (9, [ShowVersion(9)])
    assert after(state, events.VersionSeen(8)) == (state, [])
    # It started before the other refresh, and became durable before it.
    state, effects = after(state, events.Due(), events.Succeeded(ONE, 8))
    assert (state.version, effects) == (9, [ScheduleNext()])


def test_a_patched_refresh_sql_applies_from_the_next_refresh() -> None:
    patched = events.Configured(RefreshSettings(refresh_sql=SOME.refresh_sql))
    state, effects = after(LOADED, events.Due(), patched)
    assert effects == []
    state, _ = after(state, events.Succeeded(ONE, 8))
    assert after(state, events.Due())[1] == [BeginRun(TWO, "full", SOME.refresh_sql, 0)]


def test_settings_that_need_a_refresh_stop_the_one_that_runs() -> None:
    changed = events.Configured(RefreshSettings(refresh_sql=SOME.refresh_sql), refreshes=True)
    state, effects = after(LOADED, events.Due(), changed)
    assert effects == [StopRun(ONE)]
    assert after(state, changed)[1] == []
    for end in (events.RunCancelled(ONE), events.RunFailed(ONE, "stopped")):
        stopped, effects = after(state, end)
        assert effects == [BeginRun(TWO, "full", SOME.refresh_sql, 0)]
        assert stopped.error == ""
    # It finished before the stop: its version is durable, and is replaced at once.
    assert after(state, events.Succeeded(ONE, 8))[1] == [
        ShowVersion(8),
        BeginRun(TWO, "full", SOME.refresh_sql, 0),
    ]


def test_settings_that_need_a_refresh_begin_one() -> None:
    failed = after(LOADED, events.Due(), events.RunFailed(ONE, "gone"))[0]
    state, effects = after(failed, events.Configured(RefreshSettings(), refreshes=True))
    assert effects == [BeginRun(TWO, "full", None, 0)]
    assert (state.error, state.retry) == ("", None)


def test_a_disabled_dataset_stops_everything() -> None:
    off = events.Configured(RefreshSettings(is_enabled=False), refreshes=True)
    state, effects = after(LOADED, events.Due(), events.RefreshAsked(SOME), off)
    assert (effects, refreshing.status(state)) == ([StopRun(ONE)], "disabled")
    state, effects = after(state, events.RunCancelled(ONE))
    assert (effects, state.waiting) == ([], None)
    assert after(state, events.Due()) == (state, [])
    state, effects = after(state, events.Configured(RefreshSettings()))
    assert effects == [ScheduleNext()]


@pytest.mark.parametrize(
    ("settings", "overrides", "problem"),
    [
        (RefreshSettings(is_enabled=False), FULL, "it is not accelerated"),
        (RefreshSettings(refresh_mode="changes"), FULL, "its refresh_mode is 'changes'"),
        (
            RefreshSettings(refresh_mode="disabled"),
            SOME,
            "request it with refresh_mode full or append",
        ),
        (RefreshSettings(), RefreshOverrides(refresh_mode="append"), "append needs the dataset's"),
    ],
)
def test_what_cannot_be_refreshed_is_refused(
    settings: RefreshSettings, overrides: RefreshOverrides, problem: str
) -> None:
    state = replace(LOADED, settings=settings)
    with pytest.raises(RefreshRefusedError, match="dataset 'orders' is not refreshed: ") as told:
        refreshing.apply(state, events.RefreshAsked(overrides))
    assert problem in str(told.value)


def test_a_dataset_without_automatic_refreshes_loads_on_request() -> None:
    state = replace(NEW, settings=RefreshSettings(refresh_mode="disabled"))
    assert after(state, events.Due()) == (state, [])
    assert after(state, events.RefreshAsked(FULL))[1] == [BeginRun(ONE, "full", None, 0)]


def test_append_is_asked_for_or_set() -> None:
    appends = RefreshSettings(refresh_mode="append", has_time_column=True)
    state = replace(LOADED, settings=appends)
    assert after(state, events.Due())[1] == [BeginRun(ONE, "append", None, 0)]
    assert after(state, events.RefreshAsked(FULL))[1] == [BeginRun(ONE, "full", None, 0)]


@pytest.mark.parametrize(
    ("settings", "version", "happened", "expected"),
    [
        (RefreshSettings(), None, (), "initializing"),
        (RefreshSettings(ready_state="on_registration"), None, (), "ready"),
        (RefreshSettings(refresh_mode="disabled"), None, (), "disabled"),
        (RefreshSettings(is_enabled=False), 7, (), "disabled"),
        (RefreshSettings(refresh_mode="changes"), 7, (), "ready"),
        (RefreshSettings(), None, (events.Due(),), "initializing"),
        (RefreshSettings(ready_state="on_registration"), None, (events.Due(),), "refreshing"),
        (RefreshSettings(), 7, (events.Due(),), "refreshing"),
        (RefreshSettings(), None, (events.Due(), events.RunFailed(ONE, "gone")), "error"),
        (
            RefreshSettings(ready_state="on_registration"),
            None,
            (events.Due(), events.RunFailed(ONE, "gone")),
            "error",
        ),
        (RefreshSettings(), 7, (events.Due(), events.RunFailed(ONE, "gone")), "ready"),
        (RefreshSettings(), None, (events.Due(), events.RunCancelled(ONE)), "initializing"),
        (RefreshSettings(), None, (events.Due(), events.Succeeded(ONE, 1)), "ready"),
    ],
)
def test_status(
    settings: RefreshSettings, version: int | None, happened: tuple[Event, ...], expected: str
) -> None:
    state = replace(NEW, settings=settings, version=version)
    assert refreshing.status(after(state, *happened)[0]) == expected


def test_damaged_rows_without_a_copy_are_loaded_again_once() -> None:
    damaged, effects = after(LOADED, events.Damaged("a chunk is gone"))
    assert (refreshing.status(damaged), effects) == ("error", [])
    reloading, effects = after(damaged, events.RowsLost("there is no copy"))
    assert effects == [BeginRun(ONE, "full", None, 0.0)]
    again, effects = after(reloading, events.Damaged("a chunk is gone"))
    assert (again, effects) == (reloading, [])
    mended, _ = after(reloading, events.Succeeded(ONE, 8))
    assert (mended.damaged, refreshing.status(mended)) == ("", "ready")
    assert after(mended, events.RowsLost("there is no copy")) == (mended, [])


def test_damaged_rows_of_which_a_copy_is_found_need_no_refresh() -> None:
    mended, effects = after(LOADED, events.Damaged("a chunk is gone"), events.RowsRestored())
    assert (mended, effects) == (LOADED, [])


def test_damaged_rows_that_cannot_be_loaded_again_are_an_error() -> None:
    settings = RefreshSettings(refresh_mode="changes")
    found, lost = events.Damaged("gone"), events.RowsLost("no copy")
    damaged, effects = after(replace(LOADED, settings=settings), found, lost)
    assert effects == []
    assert (refreshing.status(damaged), damaged.damaged) == ("error", "no copy")
    failed, _ = after(LOADED, found, lost, events.RunFailed(ONE, "the source is away"))
    assert refreshing.status(failed) == "error"
