"""What the operator is in the middle of, as it is kept in a cluster's status.

Whoever starts anew goes on from here. It is of no use to anybody else, and may have any form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caraway_operator.scaling.draining import Drain


@dataclass(frozen=True, slots=True)
class Progress:
    """The state between two looks at a cluster."""

    drain: Drain | None = None
    executors: int | None = None
    """What autoscaling decided last."""
    step: str = ""
    since: float = 0.0
    """What a rollout waits for, and since when."""
    was_ready: bool = False
    """Whether everything ever was as it should be."""
    full: Mapping[str, int] = field(default_factory=dict)
    """Pods by component when everything was last as it should be: fewer is a loss."""


def read(found: object) -> Progress:
    """Read what a status holds; what makes no sense counts as nothing."""
    if not isinstance(found, Mapping):
        return Progress()
    drain = found.get("drain")
    executors = found.get("executors")
    return Progress(
        drain=_drain(drain) if isinstance(drain, Mapping) else None,
        executors=executors if isinstance(executors, int) else None,
        step=str(found.get("step") or ""),
        since=_seconds(found.get("since")),
        was_ready=found.get("wasReady") is True,
        full=_counts(found.get("full")),
    )


def written(progress: Progress) -> dict[str, Any] | None:
    """Return it as a status holds it; None if there is nothing to keep."""
    found: dict[str, Any] = {}
    if progress.drain:
        found["drain"] = {
            "executor": progress.drain.executor,
            "since": int(progress.drain.since),
            "purpose": progress.drain.purpose,
        }
    if progress.executors is not None:
        found["executors"] = progress.executors
    if progress.step:
        found |= {"step": progress.step, "since": int(progress.since)}
    if progress.was_ready:
        found["wasReady"] = True
    if progress.full:
        found["full"] = dict(progress.full)
    return found or None


def _drain(found: Mapping[str, Any]) -> Drain | None:
    name = found.get("executor")
    if not isinstance(name, str) or not name:
        return None
    is_update = found.get("purpose") == "update"
    return Drain(name, _seconds(found.get("since")), "update" if is_update else "scale")


# Any: what a status holds.
def _seconds(found: Any) -> float:
    return float(found) if isinstance(found, int | float) else 0.0


def _counts(found: Any) -> dict[str, int]:
    if not isinstance(found, Mapping):
        return {}
    return {str(key): count for key, count in found.items() if isinstance(count, int)}
