"""The operator's progress with a cluster, as stored in `status.progress`.

A new operator process continues from it. It is internal and may change its form at any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ExecutorDrain:
    """An executor that was asked to accept no more work."""

    executor: str
    since: float
    """Unix time, because it outlives the process."""
    purpose: Literal["scale", "update"] = "scale"


@dataclass(frozen=True, slots=True)
class ReconcileProgress:
    """The state kept between two reconciliations of a cluster."""

    drain: ExecutorDrain | None = None
    executors: int | None = None
    """The number of executors that autoscaling last decided on."""
    step: str = ""
    since: float = 0.0
    """The step that a rollout is waiting for, and since when."""
    was_ready: bool = False
    """True if the cluster has ever been ready."""
    full: Mapping[str, int] = field(default_factory=dict)
    """Pods by component when the cluster was last ready. Fewer ready pods count as a loss."""


def read_progress(value: object) -> ReconcileProgress:
    """Read `status.progress`. Values that are malformed are ignored."""
    if not isinstance(value, Mapping):
        return ReconcileProgress()
    drain = value.get("drain")
    executors = value.get("executors")
    return ReconcileProgress(
        drain=_drain(drain) if isinstance(drain, Mapping) else None,
        executors=executors if isinstance(executors, int) else None,
        step=str(value.get("step") or ""),
        since=_seconds(value.get("since")),
        was_ready=value.get("wasReady") is True,
        full=_counts(value.get("full")),
    )


def progress_status(progress: ReconcileProgress) -> dict[str, object] | None:
    """Return the value of `status.progress`, or None if there is nothing to store."""
    status: dict[str, Any] = {}
    if progress.drain:
        status["drain"] = {
            "executor": progress.drain.executor,
            "since": int(progress.drain.since),
            "purpose": progress.drain.purpose,
        }
    if progress.executors is not None:
        status["executors"] = progress.executors
    if progress.step:
        status |= {"step": progress.step, "since": int(progress.since)}
    if progress.was_ready:
        status["wasReady"] = True
    if progress.full:
        status["full"] = dict(progress.full)
    return status or None


def _drain(value: Mapping[str, object]) -> ExecutorDrain | None:
    name = value.get("executor")
    if not isinstance(name, str) or not name:
        return None
    is_update = value.get("purpose") == "update"
    return ExecutorDrain(name, _seconds(value.get("since")), "update" if is_update else "scale")


def _seconds(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _counts(value: object) -> dict[str, int]:
    if not isinstance(value, Mapping):
        return {}
    return {str(key): count for key, count in value.items() if isinstance(count, int)}
