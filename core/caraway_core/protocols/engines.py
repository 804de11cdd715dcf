"""The status of a process's engine processes, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The status of one engine process; `statements` counts running ones, `limit_bytes` 0 is no
    limit.
    """

    engine: str
    pid: int
    started_at_ms: int
    memory_bytes: int
    limit_bytes: int
    statements: int


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The current engine processes, and counts of ended ones.

    `ends` counts ended processes and `refusals` counts refused statements, both by cause.
    """

    processes: tuple[EngineStatus, ...] = ()
    ends: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)
