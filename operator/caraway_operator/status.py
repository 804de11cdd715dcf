"""What is said of a cluster: phase, counts and conditions, from what is known of it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_operator import naming
from caraway_operator.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.pods import PodView, SetView, Trouble

_LONGEST = 4000
_PENDING = frozenset({"Unschedulable", "VolumeNotBound", "SchedulingGated"})


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a cluster when its status is made."""

    name: str
    namespace: str
    generation: int
    wish: Mapping[str, int] = field(default_factory=dict)
    """Pods that there shall be, by component."""
    sets: Mapping[str, SetView] = field(default_factory=dict)
    pods: Sequence[PodView] = ()
    problems: Sequence[str] = ()
    """What is wrong with the spec."""
    clamped: Sequence[str] = ()
    refused: Sequence[str] = ()
    """What limits forbid."""
    failures: Sequence[str] = ()
    """What Kubernetes did not do, and fields that it does not let be changed."""
    unreachable: Sequence[str] = ()
    """Services that are not as they must be."""
    claims: Sequence[Trouble] = ()
    is_paused: bool = False
    is_stopped: bool = False
    is_leaving: bool = False
    is_rolling: bool = False
    rollout: str = ""
    trouble: Trouble | None = None
    """Why a rollout stands still."""
    is_scaling: bool = False
    scaling: str = ""
    was_ready: bool = False
    full: Mapping[str, int] = field(default_factory=dict)
    """Pods by component when everything was last as it should be."""
    is_tls: bool = False
    image: str = ""
    version: str = ""
    is_taken: bool = True
    """The spec could be read, and what follows is of this generation."""


@dataclass(frozen=True, slots=True)
class _Said:
    phase: str
    message: str = ""
    reason: str = ""


def is_ready(facts: Facts) -> bool:
    """Tell whether everything is as it should be."""
    if facts.unreachable:
        return False
    return bool(facts.wish) and all(
        component in facts.sets
        and facts.sets[component].is_complete
        and facts.sets[component].replicas == wanted
        for component, wanted in facts.wish.items()
    )


# Any: a status as JSON has it, here and below.
def status(
    facts: Facts, previous: Mapping[str, Any], progress: dict[str, Any] | None, now: str
) -> dict[str, Any]:
    """Return the whole status. What is None in it is absent."""
    said = _phase(facts)
    executor = facts.sets.get(EXECUTOR)
    made: dict[str, Any] = {
        "observedGeneration": facts.generation,
        "phase": said.phase,
        "message": _cut(said.message) or None,
        "replicas": executor.present if executor else 0,
        "selector": naming.selector_text(naming.selector(facts.name, EXECUTOR)),
        "executorsReady": _share(facts, EXECUTOR),
        "schedulersReady": _share(facts, SCHEDULER),
        "endpoints": _endpoints(facts),
        "progress": progress,
    }
    for component in (EXECUTOR, SCHEDULER, HEAD, STATE):
        made[component] = _counts(facts, component)
    if facts.is_taken:
        made |= {"image": facts.image or None, "version": facts.version or None}
    else:
        made |= {key: previous.get(key) for key in ("image", "version")}
    made["conditions"] = [
        _dated(condition, previous, facts.generation, now) for condition in _conditions(facts, said)
    ]
    return made


def patch(previous: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch from one status to the other; empty if they are the same."""
    changed: dict[str, Any] = {}
    for key, value in wanted.items():
        before = previous.get(key)
        if value == before:
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            gone = dict.fromkeys(before.keys() - value.keys())
            inner = patch(before, {**value, **gone})
            if inner:
                changed[key] = inner
        elif value is not None or key in previous:
            changed[key] = value
    return changed


def _phase(facts: Facts) -> _Said:
    if facts.is_leaving:
        return _Said("Deleting", "it is being deleted")
    if facts.is_paused:
        return _Said("Paused", "spec.paused is set: the operator leaves everything as it is")
    if (facts.problems or facts.refused) and not facts.sets:
        return _Said("Failed", "; ".join([*facts.problems, *facts.refused]))
    if facts.is_stopped:
        left = sum(there.present for there in facts.sets.values())
        if left:
            return _Said("Scaling", f"{left} pods stop")
        return _Said("Stopped", "spec.stopped is set: no pods run")
    if is_ready(facts) and not facts.is_rolling and not facts.is_scaling:
        return _Said("Ready", "; ".join([*facts.problems, *facts.refused, *facts.failures]))
    trouble = facts.trouble or _trouble(facts)
    if not facts.was_ready:
        return _coming(facts, trouble)
    if facts.unreachable:
        return _Said("Degraded", _unreachable(facts))
    serves = _serves(facts)
    if trouble and trouble.reason in _PENDING and serves and not _has_lost(facts):
        # Pods that were only just asked for wait for room, or for a volume.
        return _Said("Scaling", trouble.message)
    if trouble or not serves:
        message = trouble.message if trouble else "no executor, or no scheduler, is ready"
        return _Said("Degraded" if serves else "Failed", message)
    if facts.is_rolling:
        return _Said("RollingOut", facts.rollout)
    missing = _missing(facts)
    if facts.is_scaling or _is_counting(facts) or (missing and not _has_lost(facts)):
        waiting = f"waits for: {', '.join(missing)}" if missing else "executors start or stop"
        return _Said("Scaling", facts.scaling or waiting)
    if missing:
        return _Said("Degraded", f"not ready: {', '.join(missing)}")
    return _Said("Scaling", "pods that are not needed any more stop")


def _unreachable(facts: Facts) -> str:
    names = ", ".join(f"Service '{name}'" for name in facts.unreachable)
    return "; ".join([f"{names} is not as it must be", *facts.failures])


def _coming(facts: Facts, trouble: Trouble | None) -> _Said:
    if facts.failures and not facts.sets:
        return _Said("Pending", "; ".join(facts.failures))
    if trouble is None:
        waiting = ", ".join(_missing(facts))
        return _Said("Creating", f"waits for: {waiting}" if waiting else "; ".join(facts.failures))
    phase = "Pending" if trouble.reason in _PENDING else "Failed"
    return _Said(phase, trouble.message)


def _conditions(facts: Facts, said: _Said) -> list[dict[str, Any]]:
    trouble = facts.trouble or _trouble(facts)
    # Who waits for a cluster wants to ask it something.
    ready = is_ready(facts) and not facts.is_stopped
    reason = said.phase
    if facts.unreachable and facts.was_ready:
        reason = "ServiceNotApplied"
    elif trouble and not ready:
        reason = trouble.reason
    conditions = [
        _condition("Ready", ready, "AllReady" if ready else reason, "" if ready else said.message),
        _listed("SpecValid", facts.problems, "Valid", "Invalid"),
        _limits(facts),
        _listed("Reconciled", facts.failures, "Applied", "NotApplied"),
    ]
    if facts.trouble:
        conditions.append(_condition("RolledOut", False, facts.trouble.reason, (
            f"stopped, and what was not replaced yet goes on serving: {facts.trouble.message}"
        )))  # fmt: skip
    elif facts.is_rolling:
        conditions.append(_condition("RolledOut", False, "InProgress", facts.rollout))
    elif missing := _not_rolled_out(facts):
        conditions.append(_condition("RolledOut", False, said.phase, missing))
    else:
        conditions.append(_condition("RolledOut", True, "Complete", ""))
    return conditions


def _not_rolled_out(facts: Facts) -> str:
    """Say what has no pod of the newest template; empty if nothing."""
    if facts.is_stopped or not any(facts.wish.values()):
        return "no pods run"
    if not facts.was_ready and not is_ready(facts):
        return "not everything was ready yet"
    without = [
        part
        for part, wanted in facts.wish.items()
        if wanted and (part not in facts.sets or not facts.sets[part].updated)
    ]
    return f"no pods of: {', '.join(without)}" if without else ""


def _limits(facts: Facts) -> dict[str, Any]:
    if facts.refused:
        return _condition("WithinLimits", False, "Refused", "; ".join(facts.refused))
    return _listed("WithinLimits", facts.clamped, "Within", "Clamped")


def _listed(type_: str, against: Sequence[str], good: str, bad: str) -> dict[str, Any]:
    return _condition(type_, not against, bad if against else good, "; ".join(against))


def _condition(type_: str, holds: bool, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": type_,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": _cut(message),
    }


def _dated(
    condition: dict[str, Any], previous: Mapping[str, Any], generation: int, now: str
) -> dict[str, Any]:
    before: Mapping[str, Any] = next(
        (
            found
            for found in previous.get("conditions") or ()
            if found.get("type") == condition["type"]
        ),
        {},
    )
    same = before.get("status") == condition["status"]
    since = before.get("lastTransitionTime", now) if same else now
    return {**condition, "observedGeneration": generation, "lastTransitionTime": since}


def _trouble(facts: Facts) -> Trouble | None:
    """Return why something that should run does not, the gravest first."""
    of_pods = [
        pod.trouble for pod in facts.pods if pod.trouble and not pod.is_ready and not pod.is_leaving
    ]
    of_sets = [there.trouble for there in facts.sets.values() if there.trouble]
    # A pod that waits for its volume only says that it cannot be scheduled.
    waiting = [found for found in of_pods if found.reason in _PENDING]
    running = [found for found in of_pods if found.reason not in _PENDING]
    return next(iter([*running, *facts.claims, *waiting, *of_sets]), None)


def _serves(facts: Facts) -> bool:
    def has_ready(component: str) -> bool:
        there = facts.sets.get(component)
        return not facts.wish.get(component) or (there is not None and there.ready > 0)

    return has_ready(SCHEDULER) and has_ready(EXECUTOR)


def _has_lost(facts: Facts) -> bool:
    """Tell whether fewer pods are ready than were when everything was as it should be."""
    full = facts.full or facts.wish
    return any(
        (facts.sets[part].ready if part in facts.sets else 0) < min(full.get(part, 0), wanted)
        for part, wanted in facts.wish.items()
    )


def _is_counting(facts: Facts) -> bool:
    there = facts.sets.get(EXECUTOR)
    if there is None:
        return False
    return there.replicas != facts.wish.get(EXECUTOR, 0) or there.present != there.replicas


def _missing(facts: Facts) -> list[str]:
    return [
        f"{component} {_share(facts, component)}{_unmade(facts, component)}"
        for component, wanted in facts.wish.items()
        if component not in facts.sets or facts.sets[component].ready < wanted
    ]


def _unmade(facts: Facts, component: str) -> str:
    """Point to where a quota, or whatever else forbids pods of a StatefulSet, can be read."""
    there = facts.sets.get(component)
    if there is None or not there.is_observed or there.present >= there.replicas:
        return ""
    return f" (not all pods are made; if that lasts, the events of '{there.name}' say why)"


def _share(facts: Facts, component: str) -> str:
    there = facts.sets.get(component)
    return f"{there.ready if there else 0}/{facts.wish.get(component, 0)}"


def _counts(facts: Facts, component: str) -> dict[str, int] | None:
    there = facts.sets.get(component)
    if there is None and not facts.wish.get(component):
        return None
    return {
        "wanted": facts.wish.get(component, 0),
        "current": there.present if there else 0,
        "ready": there.ready if there else 0,
        "updated": there.updated if there else 0,
    }


def _endpoints(facts: Facts) -> dict[str, str]:
    host = f"{facts.name}.{facts.namespace}.svc"
    secure = facts.is_tls
    return {
        "http": f"{'https' if secure else 'http'}://{host}:{naming.HTTP_PORT}",
        "flight": f"{'grpc+tls' if secure else 'grpc'}://{host}:{naming.FLIGHT_PORT}",
        "metrics": f"http://{host}:{naming.METRICS_PORT}",
    }


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
