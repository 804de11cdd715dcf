"""The profile of a task: its times and the metrics of its operators, for EXPLAIN ANALYZE."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from caraway_core.releases.protocol_versions import growing


@growing
@dataclass(frozen=True, slots=True)
class OperatorProfile:
    """The metrics of one operator of the engine, added up over its partitions.

    `depth` is its place in the tree of operators: each reads the next ones that are deeper. Times
    are in nanoseconds, as the engine counts them.
    """

    text: str
    depth: int
    metrics: Mapping[str, int]


@growing
@dataclass(frozen=True, slots=True)
class TaskProfile:
    """The time that a task waited for a slot, was planned, ran, and waited for rows of the engine.

    The rest of `ran_ms` went into partitioning the rows and preparing them for other executors.
    """

    waited_ms: float = 0.0
    planned_ms: float = 0.0
    ran_ms: float = 0.0
    computed_ms: float = 0.0
    operators: tuple[OperatorProfile, ...] = field(default=())
