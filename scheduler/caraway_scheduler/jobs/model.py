"""What a job is: values only. What may become of it is in `states`, where it lies in `records`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from caraway_core.ids import JobId, PrincipalId
from caraway_core.outcomes import JobCode

JobStatus = Literal["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "CLOSED"]
TERMINAL: frozenset[JobStatus] = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "CLOSED"})


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job did not succeed."""

    code: JobCode
    message: str


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a client asks for. `parameters` holds values by placeholder name."""

    sql: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None
    maximum_size: int | None = None
    """Bytes that the answer may take where it is stored."""


@dataclass(frozen=True, slots=True)
class Totals:
    """How much an answer is, for whoever need not know each chunk."""

    rows: int
    size_bytes: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Job:
    """One asynchronous query, as it stands at one revision of the state store.

    `owner` names the process that is to run it, or "" when it waits for any to take it; `epoch`
    grows with every process that takes it, and fences off the ones before. `attempts` counts how
    often it began to run. `writes` is set before a statement that changes data begins: such a job
    is never run again.
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
        return self.status in TERMINAL

    @property
    def result_key(self) -> str:
        """Under which the answer of this epoch is stored."""
        return f"{self.job_id}.{self.epoch}"


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job, and the revision at which it stands in the state store."""

    job: Job
    revision: int


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a running job is."""

    stages_done: int = 0
    stages_total: int = 0
    tasks_done: int = 0
    tasks_total: int = 0
    rows: int = 0
    size_bytes: int = 0
    waits_for: str = ""
    """Why it does not go on now; "" while it does."""
