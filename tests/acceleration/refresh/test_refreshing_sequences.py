"""Invariants of refreshes after any sequence of events."""

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

from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh import refreshing
from caraway_acceleration.refresh.backoff import Retries
from caraway_acceleration.refresh.overrides import RefreshOverrides
from caraway_acceleration.refresh.refresh_events import (
    BeginRun,
    Effect,
    Event,
    RefreshSettings,
    RetryIn,
    RunNumber,
    ShowVersion,
    StopRun,
)
from caraway_acceleration.refresh.refreshing import RefreshRefusedError, RefreshState
from tests.acceleration.refresh.refreshes import FULL, ORDERS, SOME

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


@pytest.mark.parametrize("examples", [40, pytest.param(150, marks=pytest.mark.full)])
def test_what_holds_after_any_sequence_of_events(examples: int) -> None:
    run_state_machine_as_test(
        Machine,
        settings=hypothesis_settings(max_examples=examples, stateful_step_count=30, deadline=None),
    )
