"""What happens to executors, and what is to be done about it: the words of `state`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.fleet import Description

Step = Literal["install", "probe", "refuse"]
"""What a scheduler does with an executor before it gives it work; one at a time."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An executor answered the roll call; it was asked at `asked_at`."""

    description: Description
    asked_at: float
    now: float


@dataclass(frozen=True, slots=True)
class Passed:
    """Time went by."""

    now: float


@dataclass(frozen=True, slots=True)
class CatalogWanted:
    """Every executor shall hold this version of the catalog, which counts for `origin`."""

    origin: str
    version: CatalogVersion
    now: float


@dataclass(frozen=True, slots=True)
class CatalogServed:
    """New statements use this version from now on; what failed in it is known to its catalog."""

    version: CatalogVersion
    failures: frozenset[TableName]
    now: float


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step came to its end; `error` says why it failed, if it did.

    `failures` are tables that could not be installed while all others were.
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
    """A call found the executor gone, or without an answer."""

    executor_id: ExecutorId
    cause: str
    now: float


@dataclass(frozen=True, slots=True)
class Draining:
    """A call said that the executor is about to leave."""

    executor_id: ExecutorId
    now: float


@dataclass(frozen=True, slots=True)
class Wished:
    """These incarnations of executors, and no others, shall drain."""

    wishes: Mapping[ExecutorId, str]
    now: float


Event = (
    Heard | Passed | CatalogWanted | CatalogServed | StepEnded | ExecutorLost | Draining | Wished
)


@dataclass(frozen=True, slots=True)
class Take:
    """Begin a step with an executor, and report its end."""

    step: Step
    executor_id: ExecutorId
    incarnation: str
    version: CatalogVersion | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Give up every call under way to an executor."""

    executor_id: ExecutorId
    cause: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Keep nothing more about an executor."""

    executor_id: ExecutorId


@dataclass(frozen=True, slots=True)
class ReportFailedTables:
    """Tell the catalog of tables that failed after it was served; they are in the error state."""

    version: CatalogVersion
    failures: Mapping[TableName, str]


Action = Take | Abandon | Forget | ReportFailedTables
