"""The state machine of one dataset's refreshes: events in, effects out, no I/O and no clock.

At most one refresh runs, and one more waits for its end. Only `Succeeded` moves readers to a new
version; every other outcome leaves them on the present one. A failed refresh is retried unless
another one starts first, which loads newer rows anyway.
"""

from dataclasses import dataclass, field, replace

from caraway_acceleration.refresh import refresh_events as events
from caraway_acceleration.refresh.backoff import DELAYS
from caraway_acceleration.refresh.overrides import LoadMode, RefreshOverrides
from caraway_acceleration.refresh.refresh_events import (
    Effect,
    Event,
    RefreshSettings,
    RunNumber,
)
from caraway_core.errors import InvalidRequestError
from caraway_core.ids import TableName
from caraway_scheduler.catalog.states import Status

Outcome = tuple["RefreshState", tuple[Effect, ...]]


class RefreshRefusedError(InvalidRequestError):
    """The dataset does not support the requested refresh."""


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """A refresh that a user or the schedule requested."""

    overrides: RefreshOverrides = field(default_factory=RefreshOverrides)
    delay_s: float = 0.0
    ask: str = ""
    is_following: bool = False
    """True if other datasets moved, which this one copies."""


@dataclass(frozen=True, slots=True)
class RefreshRun:
    """A running refresh and its current attempt; `partitions` is 0 until it is known."""

    number: RunNumber
    request: RefreshRequest
    attempt: int = 1
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class RefreshState:
    """The state of a dataset's refreshes.

    `version` is the one that readers see, or None before the first load. `error` is the reason of
    the last failure, which a success clears. `retry` is the run to retry.
    """

    dataset: TableName
    settings: RefreshSettings = field(default_factory=RefreshSettings)
    version: int | None = None
    running: RefreshRun | None = None
    waiting: RefreshRequest | None = None
    retry: RefreshRun | None = None
    error: str = ""
    failures: int = 0
    runs: int = 0
    damaged: str = ""
    """Why its stored rows cannot be read; a successful refresh clears it."""


def apply(state: RefreshState, event: Event) -> Outcome:
    """Return the state after the event and the effects; reports of earlier runs are ignored.

    Raises:
        RefreshRefusedError: the dataset does not support the requested refresh.
    """
    match event:
        case events.RefreshAsked():
            return _asked(state, event)
        case events.Due():
            if state.running is not None or not _is_automatic(state.settings):
                return state, ()
            return _begin(state, RefreshRequest())
        case events.ParentsMoved():
            return _followed(state)
        case events.RetryDue(number):
            if state.retry is None or state.retry.number != number:
                return state, ()
            return _begin(state, state.retry.request, state.retry.attempt + 1)
        case events.VersionSeen(version):
            return _show(state, version)
        case events.Damaged(reason):
            return replace(state, damaged=state.damaged or reason), ()
        case events.RowsRestored():
            return replace(state, damaged=""), ()
        case events.RowsLost(reason):
            return _reloaded(state, reason)
        case events.Configured():
            return _configured(state, event)
    if state.running is None or state.running.number != event.run:
        return state, ()
    return _reported(state, state.running, event)


def status(state: RefreshState) -> Status:
    """Return the status for users; a dataset with rows is ready even if its last refresh failed."""
    settings = state.settings
    if not settings.is_enabled:
        return "disabled"
    if state.damaged and state.running is None:
        return "error"
    can_answer = state.version is not None or settings.ready_state == "on_registration"
    if state.running is not None:
        return "refreshing" if can_answer else "initializing"
    if state.version is not None:
        return "ready"
    if settings.refresh_mode == "disabled":
        return "disabled"
    if state.error:
        return "error"
    return "ready" if can_answer else "initializing"


def _asked(state: RefreshState, event: events.RefreshAsked) -> Outcome:
    problem = _problem(state.settings, event.overrides)
    if problem:
        raise RefreshRefusedError(f"dataset '{state.dataset}' is not refreshed: {problem}")
    delay_s = (event.overrides.refresh_jitter_max_s or 0) * event.chance
    request = RefreshRequest(event.overrides, delay_s, event.ask)
    if state.running is not None:
        return replace(state, waiting=request), ()
    return _begin(state, request)


def _followed(state: RefreshState) -> Outcome:
    """Copy the rows of the parents once more, after the running refresh if there is one."""
    if not _is_automatic(state.settings):
        return state, ()
    request = RefreshRequest(is_following=True)
    if state.running is not None:
        return replace(state, waiting=state.waiting or request), ()
    return _begin(state, request)


def _reloaded(state: RefreshState, reason: str) -> Outcome:
    """Request a full reload after rows were lost, unless a refresh has already replaced them."""
    if not state.damaged:
        return state, ()
    state = replace(state, damaged=reason)
    if not _is_automatic(state.settings):
        return state, ()
    request = RefreshRequest(RefreshOverrides(refresh_mode="full"))
    if state.running is not None:
        return replace(state, waiting=request), ()
    return _begin(state, request)


def _reported(state: RefreshState, running: RefreshRun, event: events.OfRun) -> Outcome:
    match event:
        case events.Succeeded(version=version):
            shown, show = _show(replace(state, error="", failures=0, damaged=""), version)
            following, effects = _go_on(shown)
            return following, (*show, *effects)
        case events.RunFailed() if not running.is_stopping:
            return _failed(state, running, event)
        case events.RunFailed() | events.RunCancelled():
            return _go_on(state)


def _failed(state: RefreshState, running: RefreshRun, event: events.RunFailed) -> Outcome:
    failures = state.failures + 1
    failed, effects = _go_on(replace(state, error=event.error, failures=failures))
    is_last = not state.settings.retries.allow(running.attempt)
    if failed.running is not None or is_last:
        return failed, effects
    # Both timers are set: a scheduled refresh that is due sooner replaces the retry.
    retry = events.RetryIn(running.number, DELAYS.delay_s(failures, event.chance))
    return replace(failed, retry=running), (retry, *effects)


def _configured(state: RefreshState, event: events.Configured) -> Outcome:
    settings, running = event.settings, state.running
    waiting = _permitted(settings, state.waiting)
    retry = state.retry if settings.retries.are_enabled else None
    if retry is not None and _problem(settings, retry.request.overrides):
        retry = None
    state = replace(state, settings=settings, waiting=waiting, retry=retry)
    request = RefreshRequest() if event.refreshes and _is_automatic(settings) else None
    if event.refreshes:
        state = replace(state, error="", failures=0, retry=None)
    if running is None:
        return _begin(state, request) if request is not None else _go_on(state)
    state = replace(state, waiting=waiting or request)
    if running.is_stopping or not (
        event.refreshes or _problem(settings, running.request.overrides)
    ):
        return state, ()
    return replace(state, running=replace(running, is_stopping=True)), (
        events.StopRun(running.number),
    )


def _go_on(state: RefreshState) -> Outcome:
    """Start the waiting refresh; otherwise schedule the next one."""
    state = replace(state, running=None)
    if state.waiting is not None:
        return _begin(state, state.waiting)
    return state, (events.ScheduleNext(),) if _is_automatic(state.settings) else ()


def _begin(state: RefreshState, request: RefreshRequest, attempt: int = 1) -> Outcome:
    number = events.RunNumber(state.runs + 1)
    run = RefreshRun(number, request, attempt)
    overrides, settings = request.overrides, state.settings
    mode: LoadMode = overrides.refresh_mode or (
        "append" if settings.refresh_mode == "append" else "full"
    )
    own = overrides.refresh_sql
    begin = events.BeginRun(
        number, mode, own or settings.refresh_sql, request.delay_s, request.ask, own is not None,
        request.is_following,
    )  # fmt: skip
    return replace(state, running=run, waiting=None, retry=None, runs=number), (begin,)


def _show(state: RefreshState, version: int) -> Outcome:
    if state.version is not None and version <= state.version:
        return state, ()
    return replace(state, version=version), (events.ShowVersion(version),)


def _permitted(settings: RefreshSettings, request: RefreshRequest | None) -> RefreshRequest | None:
    return None if request is None or _problem(settings, request.overrides) else request


def _is_automatic(settings: RefreshSettings) -> bool:
    return settings.is_enabled and settings.refresh_mode in ("full", "append")


def _problem(settings: RefreshSettings, overrides: RefreshOverrides) -> str:
    """Return why a refresh with these overrides is impossible, or "" if it is possible."""
    mode = overrides.refresh_mode or settings.refresh_mode
    if not settings.is_enabled:
        return "it is not accelerated; enable its 'acceleration' in the manifest"
    if settings.refresh_mode == "changes":
        return "its refresh_mode is 'changes', which needs no refresh"
    if mode == "disabled":
        return "its refresh_mode is 'disabled'; request it with refresh_mode full or append"
    if mode == "append" and not settings.has_time_column:
        return "append needs the dataset's 'time_column'; use full"
    return ""
