"""What happens to the refreshes of a dataset, and what is to be done: the words of `refreshing`."""

from dataclasses import dataclass, field
from typing import Literal, NewType

from caraway_scheduler.acceleration.recipes.statements import RefreshSql
from caraway_scheduler.acceleration.refresh.backoff import Retries
from caraway_scheduler.acceleration.refresh.overrides import LoadMode, RefreshOverrides
from caraway_scheduler.catalog.states import ReadyState

RunNumber = NewType("RunNumber", int)
RefreshMode = Literal["full", "append", "changes", "disabled"]


@dataclass(frozen=True, slots=True)
class RefreshSettings:
    """How a dataset is refreshed, as its manifest and later changes have it."""

    is_enabled: bool = True
    refresh_mode: RefreshMode = "full"
    refresh_sql: RefreshSql | None = None
    ready_state: ReadyState = "on_load"
    retries: Retries = field(default_factory=Retries)
    has_time_column: bool = False


@dataclass(frozen=True, slots=True)
class RefreshAsked:
    """Somebody wants a refresh; `chance` in [0, 1) is how much of the jitter it takes."""

    overrides: RefreshOverrides = field(default_factory=RefreshOverrides)
    chance: float = 0.0
    ask: str = ""
    """The id under which it is written down, see `wishes`."""


@dataclass(frozen=True, slots=True)
class Due:
    """The time of the timetable came."""


@dataclass(frozen=True, slots=True)
class RetryDue:
    """The time that `RetryIn` gave for this run came."""

    run: RunNumber


@dataclass(frozen=True, slots=True)
class Began:
    """A run loads so many partitions; again when it had to begin anew."""

    run: RunNumber
    partitions: int


@dataclass(frozen=True, slots=True)
class Progressed:
    """So many partitions of a run are loaded."""

    run: RunNumber
    done: int


@dataclass(frozen=True, slots=True)
class Succeeded:
    """All partitions of a run are in place, and the version that names them is durable."""

    run: RunNumber
    version: int


@dataclass(frozen=True, slots=True)
class RunFailed:
    """A run came to nothing; `chance` in [0, 1) spreads the retry."""

    run: RunNumber
    error: str
    chance: float = 0.0


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """A run was stopped before its end, by `StopRun` or by a user."""

    run: RunNumber


@dataclass(frozen=True, slots=True)
class VersionSeen:
    """Another process, or an applied change, made a version durable."""

    version: int


@dataclass(frozen=True, slots=True)
class Damaged:
    """Stored rows of the version that readers have cannot be read; `reason` is for users."""

    reason: str


@dataclass(frozen=True, slots=True)
class RowsRestored:
    """The rows that could not be read are there again."""


@dataclass(frozen=True, slots=True)
class RowsLost:
    """There is no copy of the rows that cannot be read; `reason` is for users."""

    reason: str


@dataclass(frozen=True, slots=True)
class Configured:
    """The settings changed; `refreshes` when what is loaded no longer fits them."""

    settings: RefreshSettings
    refreshes: bool = False


OfRun = Began | Progressed | Succeeded | RunFailed | RunCancelled
"""What a run reports; the last three end it."""

OfRows = Damaged | RowsRestored | RowsLost
"""What becomes of rows that are stored."""

Event = RefreshAsked | Due | RetryDue | VersionSeen | OfRows | Configured | OfRun


@dataclass(frozen=True, slots=True)
class BeginRun:
    """Load, after a delay, and report the end: succeeded, failed or cancelled."""

    run: RunNumber
    mode: LoadMode
    refresh_sql: RefreshSql | None
    delay_s: float
    ask: str = ""
    has_own_sql: bool = False
    """The refresh was asked for with a `refresh_sql` of its own; what is set does not count."""


@dataclass(frozen=True, slots=True)
class StopRun:
    """Give up a run, and report its end."""

    run: RunNumber


@dataclass(frozen=True, slots=True)
class ShowVersion:
    """Let readers see this version: all partitions at once, from here on."""

    version: int


@dataclass(frozen=True, slots=True)
class RetryIn:
    """Report `RetryDue` after a delay."""

    run: RunNumber
    delay_s: float


@dataclass(frozen=True, slots=True)
class ScheduleNext:
    """Ask the timetable when to report `Due`, in place of the time it gave before."""


Effect = BeginRun | StopRun | ShowVersion | RetryIn | ScheduleNext
