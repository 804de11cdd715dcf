"""The values that describe jobs. `states` defines transitions, `records` the storage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from caraway_core.errors.outcomes import JobCode
from caraway_core.ids import JobId, PrincipalId

JobStatus = Literal["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "CLOSED"]
TERMINAL: frozenset[JobStatus] = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "CLOSED"})


@dataclass(frozen=True, slots=True)
class JobError:
    """The error of a job that did not succeed."""

    code: JobCode
    message: str


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A client's request for a job. `parameters` maps placeholder names to values."""

    sql: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None
    maximum_size: int | None = None
    """The maximum size in bytes of the stored answer."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The size of an answer, without its chunks."""

    rows: int
    size_bytes: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Job:
    """An asynchronous query, as recorded at one revision of the state store.

    `owner` names the process that runs it, or is "" while any process may take it. `epoch`
    increases with every process that takes it, and fences off earlier owners. `attempts` counts how
    often it was started. `writes` is set before a statement that changes data starts: such a job is
    never run again.
    """

    job_id: JobId
    principal: PrincipalId
    is_read_only: bool
    request: JobRequest
    status: JobStatus
    owner: str
    epoch: int
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    attempts: int = 0
    writes: bool = False
    error: JobError | None = None
    totals: Totals | None = None

    @property
    def is_over(self) -> bool:
        """Return whether the job has reached a terminal status."""
        return self.status in TERMINAL

    @property
    def result_key(self) -> str:
        """The key under which the answer of this epoch is stored."""
        return f"{self.job_id}.{self.epoch}"


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job with its revision in the state store."""

    job: Job
    revision: int


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a running job."""

    stages_done: int = 0
    stages_total: int = 0
    tasks_done: int = 0
    tasks_total: int = 0
    rows: int = 0
    size_bytes: int = 0
    waits_for: str = ""
    """The reason that blocks the job now, or "" if none does."""
