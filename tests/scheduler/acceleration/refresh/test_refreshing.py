"""One dataset's refreshes: each event, and invariants after any sequence of events."""

from dataclasses import replace

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from caraway_core.ids import TableName
from caraway_scheduler.acceleration.recipes import statements
from caraway_scheduler.acceleration.refresh import refresh_events as events
from caraway_scheduler.acceleration.refresh import refreshing
from caraway_scheduler.acceleration.refresh.backoff import DELAYS, Retries
from caraway_scheduler.acceleration.refresh.overrides import RefreshOverrides
from caraway_scheduler.acceleration.refresh.refresh_events import (
    BeginRun,
    Effect,
    Event,
    RefreshSettings,
    RetryIn,
    RunNumber,
    ScheduleNext,
    ShowVersion,
    StopRun,
)
from caraway_scheduler.acceleration.refresh.refreshing import RefreshRefusedError, RefreshState

ORDERS = TableName("orders")
NEW = RefreshState(ORDERS)
LOADED = replace(NEW, version=7)
FULL = RefreshOverrides(refresh_mode="full")
SOME = RefreshOverrides(statements.refresh_sql("SELECT * FROM orders WHERE id > 5", ORDERS))
ONE, TWO = RunNumber(1), RunNumber(2)


def after(state: RefreshState, *happened: Event) -> tuple[RefreshState, list[Effect]]:
    """Return the state and the effects of the last event."""
    effects: tuple[Effect, ...] = ()
    for event in happened:
        state, effects = refreshing.apply(state, event)
    return state, list(effects)


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


CHANCES = st.floats(0, 1, exclude_max=True)
OVERRIDES = st.sampled_from(
    [RefreshOverrides(), FULL, SOME, RefreshOverrides(refresh_mode="append")]
)
SETTINGS = st.builds(
    RefreshSettings,
    is_enabled=st.sampled_from([True, True, False]),
    refresh_mode=st.sampled_from(["full", "append", "changes", "disabled"]),
    ready_state=st.sampled_from(["on_load", "on_registration"]),
    retries=st.sampled_from([Retries(), Retries(max_attempts=1), Retries(False)]),
    has_time_column=st.booleans(),
)
NUMBERS = st.integers(1, 12).map(RunNumber)


class Machine(RuleBasedStateMachine):
    """A driver that may report anything at any time, and the effects that it received."""

    @initialize(settings=SETTINGS, version=st.none() | st.integers(0, 3))
    def start(self, settings: RefreshSettings, version: int | None) -> None:
        self.state = RefreshState(ORDERS, settings, version)
        self.running: RunNumber | None = None
        self.shown = -1 if version is None else version
        self.owed: RefreshOverrides | None = None
        self.stamp = 0

    def report(self, event: Event) -> tuple[Effect, ...]:
        if isinstance(event, events.Succeeded | events.RunFailed | events.RunCancelled):
            self.running = None if event.run == self.running else self.running
        self.state, effects = refreshing.apply(self.state, event)
        for effect in effects:
            if isinstance(effect, BeginRun):
                assert self.running is None, "two refreshes at once"
                self.running = effect.run
                if self.owed is not None:
                    assert self.owed.refresh_sql in (None, effect.refresh_sql)
                    assert self.owed.refresh_mode in (None, effect.mode)
                self.owed = None
            elif isinstance(effect, ShowVersion):
                assert effect.version > self.shown, "readers went back"
                self.shown = effect.version
            elif isinstance(effect, StopRun):
                assert effect.run == self.running
        return effects

    @rule(overrides=OVERRIDES, chance=CHANCES)
    def ask(self, overrides: RefreshOverrides, chance: float) -> None:
        was_running = self.running is not None
        try:
            effects = self.report(events.RefreshAsked(overrides, chance))
        except RefreshRefusedError:
            return
        assert was_running is not any(isinstance(effect, BeginRun) for effect in effects)
        self.owed = overrides if was_running else None

    @rule(number=NUMBERS)
    def due(self, number: RunNumber) -> None:
        self.report(events.Due())
        self.report(events.RetryDue(number))

    @rule(
        event=st.builds(events.Succeeded, NUMBERS, st.integers(0, 9))
        | st.builds(events.RunFailed, NUMBERS, st.just("gone"), CHANCES)
        | st.builds(events.RunCancelled, NUMBERS)
        | st.builds(events.VersionSeen, st.integers(0, 9))
    )
    def anything_ended(self, event: Event) -> None:
        self.report(event)

    @precondition(lambda self: self.running is not None)
    @rule(end=st.sampled_from(["succeeded", "failed", "cancelled"]), version=st.integers(0, 30))
    def ended(self, end: str, version: int) -> None:
        assert self.running is not None
        number, owed = self.running, self.owed
        match end:
            case "succeeded":
                self.report(events.Succeeded(number, version))
                assert self.shown >= version and self.state.error == ""
            case "failed":
                effects = self.report(events.RunFailed(number, "gone"))
                retried = any(isinstance(effect, RetryIn) for effect in effects)
                assert retried is (self.state.retry is not None)
            case _:
                self.report(events.RunCancelled(number))
        assert owed is None or self.running is not None, "an ask was lost"

    @rule(settings=SETTINGS, refreshes=st.booleans())
    def configured(self, settings: RefreshSettings, refreshes: bool) -> None:
        self.report(events.Configured(settings, refreshes))
        if self.owed is not None:
            may_ask = replace(self.state, running=None, waiting=None)
            try:
                refreshing.apply(may_ask, events.RefreshAsked(self.owed))
            except RefreshRefusedError:
                self.owed = None  # It became impossible: only then is a request dropped.

    @invariant()
    def it_knows_what_runs(self) -> None:
        running = self.state.running
        assert (running.number if running else None) == self.running
        assert self.state.waiting is None or running is not None
        assert self.state.retry is None or running is None

    @invariant()
    def an_ask_waits_as_it_was_last_asked(self) -> None:
        if self.owed is not None:
            assert self.state.waiting is not None
            assert self.state.waiting.overrides == self.owed

    @invariant()
    def readers_have_what_was_shown(self) -> None:
        assert self.state.version == (None if self.shown < 0 else self.shown)

    @invariant()
    def the_status_matches(self) -> None:
        status, state = refreshing.status(self.state), self.state
        assert (status == "refreshing") <= (self.running is not None)
        assert (status == "error") <= (state.version is None and state.error != "")
        if not state.settings.is_enabled:
            assert status == "disabled"
        elif self.shown >= 0:
            assert status == ("ready" if self.running is None else "refreshing")
        elif state.settings.ready_state == "on_load":
            assert status not in ("ready", "refreshing")


def test_what_holds_after_any_sequence_of_events() -> None:
    run_state_machine_as_test(
        Machine,
        settings=hypothesis_settings(max_examples=150, stateful_step_count=30, deadline=None),
    )


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
