"""The events and effects of the refresh state machine."""

from dataclasses import dataclass, field
from typing import Literal, NewType

from caraway_acceleration.recipes.statements import RefreshSql
from caraway_acceleration.refresh.backoff import Retries
from caraway_acceleration.refresh.overrides import LoadMode, RefreshOverrides
from caraway_scheduler.catalog.states import ReadyState

RunNumber = NewType("RunNumber", int)
RefreshMode = Literal["full", "append", "changes", "disabled"]


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """The refresh settings of a dataset, from its manifest and later changes."""

    is_enabled: bool = True
    refresh_mode: RefreshMode = "full"
    refresh_sql: RefreshSql | None = None
    ready_state: ReadyState = "on_load"
    retries: Retries = field(default_factory=Retries)
    has_time_column: bool = False


@dataclass(frozen=True, slots=True)
class RefreshAsked:
    """A refresh was requested; `chance` in [0, 1) selects its part of the jitter."""

    overrides: RefreshOverrides = field(default_factory=RefreshOverrides)
    chance: float = 0.0
    ask: str = ""
    """The id of the stored request; see `wishes`."""


@dataclass(frozen=True, slots=True)
class Due:
    """A scheduled refresh is due."""


@dataclass(frozen=True, slots=True)
class ParentsMoved:
    """The rows of datasets that this one copies may have changed."""


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The delay of `RetryIn` for this run has passed."""

    run: RunNumber


@dataclass(frozen=True, slots=True)
class Succeeded:
    """A run finished: all partitions are stored, and its version is durable."""

    run: RunNumber
    version: int


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A run failed; `chance` in [0, 1) spreads the retry."""

    run: RunNumber
    error: str
    chance: float = 0.0


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """A run was cancelled before its end, by `StopRun` or by a user."""

    run: RunNumber


@dataclass(frozen=True, slots=True)
class VersionSeen:
    """Another process, or an applied change, published a version."""

    version: int


@dataclass(frozen=True, slots=True)
class Damaged:
    """Stored rows of the current version cannot be read; `reason` is for users."""

    reason: str


@dataclass(frozen=True, slots=True)
class RowsRestored:
    """The rows that could not be read have been restored."""


@dataclass(frozen=True, slots=True)
class RowsLost:
    """The rows that cannot be read have no copy; `reason` is for users."""

    reason: str


@dataclass(frozen=True, slots=True)
class Configured:
    """The settings changed; `refreshes` is set if loaded rows no longer match them."""

    settings: RefreshSettings
    refreshes: bool = False


OfRun = Succeeded | RunFailed | RunCancelled
"""The end of a run."""

OfRows = Damaged | RowsRestored | RowsLost
"""Events about stored rows."""

Event = RefreshAsked | Due | ParentsMoved | RetryDue | VersionSeen | OfRows | Configured | OfRun


@dataclass(frozen=True, slots=True)
class BeginRun:
    """Load after a delay, and report the end: succeeded, failed or cancelled."""

    run: RunNumber
    mode: LoadMode
    refresh_sql: RefreshSql | None
    delay_s: float
    ask: str = ""
    has_own_sql: bool = False
    """True if the request has its own `refresh_sql`, which overrides the stored setting."""
    is_following: bool = False
    """True if it does nothing where the rows are those of the datasets that it copies."""


@dataclass(frozen=True, slots=True)
class StopRun:
    """Cancel a run, and report its end."""

    run: RunNumber


@dataclass(frozen=True, slots=True)
class ShowVersion:
    """Let readers see this version with all its partitions."""

    version: int


@dataclass(frozen=True, slots=True)
class RetryIn:
    """Report `RetryDue` after a delay."""

    run: RunNumber
    delay_s: float


@dataclass(frozen=True, slots=True)
class ScheduleNext:
    """Schedule the next `Due`, replacing the previous schedule."""


Effect = BeginRun | StopRun | ShowVersion | RetryIn | ScheduleNext
