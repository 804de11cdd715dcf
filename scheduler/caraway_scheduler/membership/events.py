"""The events and actions of the membership state machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.fleet import Description

Step = Literal["install", "probe", "refuse"]
"""A step that a scheduler performs with an executor, one at a time."""


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered:
    """An executor answered a heartbeat that was sent at `asked_at`."""

    description: Description
    asked_at: float
    now: float


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time has passed."""

    now: float


@dataclass(frozen=True, slots=True)
class CatalogWanted:
    """Every executor must install this version of the catalog of `origin`."""

    origin: str
    version: CatalogVersion
    now: float


@dataclass(frozen=True, slots=True)
class CatalogServed:
    """New statements use this version from now on; `failures` are its failed tables."""

    version: CatalogVersion
    failures: frozenset[TableName]
    now: float


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step ended; `error` is the reason if it failed.

    `failures` are the tables that could not be installed, while all others were.
    """

    executor_id: ExecutorId
    incarnation: str
    step: Step
    now: float
    error: str = ""
    version: CatalogVersion | None = None
    failures: Mapping[TableName, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutorLost:
    """A call found that the executor is gone or does not respond."""

    executor_id: ExecutorId
    cause: str
    now: float


@dataclass(frozen=True, slots=True)
class Draining:
    """A call reported that the executor is about to leave."""

    executor_id: ExecutorId
    now: float


@dataclass(frozen=True, slots=True)
class DrainsWanted:
    """Exactly these incarnations of executors should drain."""

    wishes: Mapping[ExecutorId, str]
    now: float


Event = (
    HeartbeatAnswered
    | TimePassed
    | CatalogWanted
    | CatalogServed
    | StepEnded
    | ExecutorLost
    | Draining
    | DrainsWanted
)


@dataclass(frozen=True, slots=True)
class Take:
    """Start a step with an executor, and report its end."""

    step: Step
    executor_id: ExecutorId
    incarnation: str
    version: CatalogVersion | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Fail all running calls to an executor."""

    executor_id: ExecutorId
    cause: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget an executor."""

    executor_id: ExecutorId


@dataclass(frozen=True, slots=True)
class ReportFailedTables:
    """Report tables that failed after their catalog was served; they enter the error state."""

    version: CatalogVersion
    failures: Mapping[TableName, str]


Action = Take | Abandon | Forget | ReportFailedTables
