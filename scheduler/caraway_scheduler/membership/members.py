"""The record of one executor in the membership state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.dispatch import ExecutorState, ExecutorStatus
from caraway_core.protocols.fleet import Description
from caraway_core.protocols.offers import FlightPlace
from caraway_scheduler.membership.events import Step


@dataclass(frozen=True, slots=True)
class Member:
    """An executor that may receive work."""

    executor_id: ExecutorId
    cores: int
    memory_bytes: int
    address: str
    incarnation: str
    active_tasks: int = 0
    flight: FlightPlace | None = None
    """Where it serves parts of answers, if it does."""
    gpus: int = 0
    models: frozenset[str] = frozenset()
    """The keys of the models that it hosts."""


@dataclass(frozen=True, slots=True)
class Record:
    """The known facts of one executor, and its state."""

    description: Description
    heard_at: float
    state: ExecutorState = "registered"
    held: CatalogVersion | None = None
    held_at: float = 0.0
    has_served: bool = False
    """True if it received the catalog that new statements use; it keeps that besides newer ones."""
    failures: Mapping[TableName, str] = field(default_factory=dict)
    is_proven: bool = False
    is_notified: bool = False
    is_leaving: bool = False
    step: Step | None = None
    attempts: int = 0
    next_step_at: float = 0.0
    error: str = ""
    error_of: Literal["", "install", "probe", "refuse"] = ""
    lost_at: float | None = None
    cause: str = ""

    @property
    def executor_id(self) -> ExecutorId:
        return self.description.executor_id

    def member(self) -> Member:
        """Return the executor as a member."""
        description = self.description
        return Member(
            description.executor_id,
            description.cores,
            description.memory_bytes,
            description.address,
            description.incarnation,
            description.active_tasks,
            description.flight,
            description.gpus,
            frozenset(description.models),
        )

    def status(self, now: float, reason: str) -> ExecutorStatus:
        """Return the status of the executor for listings."""
        description = self.description
        return ExecutorStatus(
            executor_id=description.executor_id,
            state=self.state,
            address=description.address,
            incarnation=description.incarnation,
            cores=description.cores,
            memory_bytes=description.memory_bytes,
            memory_used_bytes=description.memory_used_bytes,
            build=description.build,
            protocol_version=description.spoken.newest,
            active_tasks=description.active_tasks,
            finished_tasks=description.finished_tasks,
            failed_tasks=description.failed_tasks,
            catalog_version=self.held,
            holds=description.holds,
            heartbeat_age_s=max(0.0, now - self.heard_at),
            reason=reason,
        )
