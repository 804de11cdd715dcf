"""The states of deployments, and how they follow the observed state of the runtime."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

RECHECK_AFTER = timedelta(minutes=15)
_YOUNG = timedelta(minutes=1)
_WATCHED_S = 15.0


def mark(created_at: datetime) -> int:
    """Return the time of a project, which distinguishes it from others that had its id."""
    return int(created_at.timestamp())


class Status(StrEnum):
    """The status of a deployment."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CREATED = "created"
    """Superseded before it came to an end: by a pause, a deletion, or another deployment."""


UNFINISHED = (Status.QUEUED, Status.IN_PROGRESS)


class Code(StrEnum):
    """The reason why a runtime does not start."""

    INSUFFICIENT_CPU = "insufficient_cpu"
    INSUFFICIENT_MEMORY = "insufficient_memory"
    INSUFFICIENT_STORAGE = "insufficient_storage"
    INSUFFICIENT_INSTANCES = "insufficient_instances"
    POD_EXCEEDS_NODE_CAPACITY = "pod_exceeds_node_capacity"
    UNABLE_TO_START = "unable_to_start"
    INTERNAL_ERROR = "internal_error"

    @property
    def is_retriable(self) -> bool:
        """True if the deployment goes on, because the shortage may end."""
        return self.value.startswith("insufficient_")


@dataclass(frozen=True, slots=True)
class Problem:
    """A code and its message, which are set and cleared together."""

    code: Code
    message: str


class Phase(StrEnum):
    """The state of a project's runtime."""

    ABSENT = "absent"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Observed:
    """The observed state of a project's runtime."""

    phase: Phase
    deployment_id: int | None = None
    """The deployment whose runtime it is."""
    problem: Problem | None = None
    endpoint: str | None = None
    """The URL of its HTTP API."""
    flight_endpoint: str | None = None
    """The URL of its Flight API."""
    metrics_endpoint: str | None = None
    """The URL of its metrics, which the service reads; never shown."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a deployment."""

    status: Status
    problem: Problem | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def is_finished(self) -> bool:
        return self.status not in UNFINISHED


def begin(progress: Progress, now: datetime) -> Progress:
    """Return the progress of a deployment that is being applied."""
    if progress.status is not Status.QUEUED:
        return progress
    return Progress(Status.IN_PROGRESS, started_at=now)


def supersede(progress: Progress, now: datetime) -> Progress:
    """Return the progress of a deployment that something newer replaces."""
    if progress.is_finished:
        return progress
    return Progress(Status.CREATED, None, progress.started_at, now)


def judge(progress: Progress, id_: int, seen: Observed, now: datetime) -> Progress:
    """Return the progress of the deployment `id_`, by the observed state of the runtime.

    A runtime of another deployment says nothing, and no deployment fails because of its age.
    """
    if progress.status is not Status.IN_PROGRESS or seen.deployment_id != id_:
        return progress
    if seen.phase is Phase.READY:
        return replace(progress, status=Status.SUCCEEDED, problem=None, finished_at=now)
    if seen.problem is not None and not seen.problem.code.is_retriable:
        return replace(progress, status=Status.FAILED, problem=seen.problem, finished_at=now)
    if seen.phase is Phase.FAILED and seen.problem is None:
        problem = Problem(Code.UNABLE_TO_START, "the runtime has ended without saying why")
        return replace(progress, status=Status.FAILED, problem=problem, finished_at=now)
    return replace(progress, problem=seen.problem)


def is_overdue(progress: Progress, now: datetime) -> bool:
    """Return whether a deployment takes so long that its objects are applied again."""
    return progress.started_at is not None and now - progress.started_at >= RECHECK_AFTER


def next_look_s(progress: Progress, now: datetime, *, is_watched: bool = False) -> float:
    """Return the seconds until the runtime is looked at again.

    One that is watched is looked at as soon as it changes, and this is for what a watch misses.
    """
    if is_watched and not is_overdue(progress, now):
        return _WATCHED_S
    if progress.started_at is None or now - progress.started_at < _YOUNG:
        return 0.5
    return 60.0 if is_overdue(progress, now) else 5.0
