"""The state of the engine processes of a serving process, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """One engine process. `statements` counts those under way; `limit_bytes` 0 is no limit."""

    engine: str
    pid: int
    started_at_ms: int
    memory_bytes: int
    limit_bytes: int
    statements: int


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The engine processes of now, and what became of those before.

    `ends` counts processes that were ended or ended by themselves, `refusals` statements that were
    refused because they had ended engines, both by cause.
    """

    processes: tuple[EngineStatus, ...] = ()
    ends: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)
