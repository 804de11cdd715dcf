"""Computes a cluster's status: phase, replica counts and conditions. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from caraway_kube import naming
from caraway_kube.naming import EXECUTOR, HEAD, SCHEDULER, STATE
from caraway_operator.policy.conditions import condition, cut, dated, kept, listed
from caraway_operator.policy.decisions import Decision
from caraway_operator.scheduler_client import PartView
from caraway_operator.states.pods import PodView, WorkloadProblem, WorkloadView
from caraway_operator.states.progress import ReconcileProgress

_PENDING = frozenset({"Unschedulable", "VolumeNotBound", "SchedulingGated"})


@dataclass(frozen=True, slots=True)
class SpecFacts:
    """The spec of a cluster, and its problems."""

    problems: Sequence[str] = ()
    clamped: Sequence[str] = ()
    """Values that limits lowered."""
    refused: Sequence[str] = ()
    """The problems that limits cause."""
    is_accepted: bool = True
    """The spec is valid, and image and version are those of this generation."""
    is_paused: bool = False
    is_stopped: bool = False
    has_tls: bool = False
    image: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ObservedFacts:
    """The objects of a cluster as they were last observed."""

    workloads: Mapping[str, WorkloadView] = field(default_factory=dict)
    """By component."""
    pods: Sequence[PodView] = ()
    claim_problems: Sequence[WorkloadProblem] = ()
    unreachable: Sequence[str] = ()
    """Services that are missing, or differ from their desired state."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Everything that the status of a cluster is computed from."""

    name: str
    namespace: str
    generation: int
    desired_replicas: Mapping[str, int] = field(default_factory=dict)
    """By component."""
    spec: SpecFacts = field(default_factory=SpecFacts)
    observed: ObservedFacts = field(default_factory=ObservedFacts)
    decision: Decision = field(default_factory=Decision)
    progress: ReconcileProgress = field(default_factory=ReconcileProgress)
    """As it was before this reconciliation."""
    failures: Sequence[str] = ()
    """Requests that Kubernetes rejected, and fields that it does not let change."""
    is_terminating: bool = False
    unready_parts: Sequence[PartView] | None = None
    """Parts of the manifest that are not ready; None if no scheduler was asked or answered."""
    refusal: str | None = None
    """Why schedulers refuse the operator; '' if they do not, None if unknown."""

    @property
    def workloads(self) -> Mapping[str, WorkloadView]:
        """The observed workloads, by component."""
        return self.observed.workloads


@dataclass(frozen=True, slots=True)
class _Phase:
    name: str
    message: str = ""


def is_ready(facts: ClusterFacts) -> bool:
    """Return whether every component is complete and all Services exist."""
    if facts.observed.unreachable:
        return False
    return bool(facts.desired_replicas) and all(
        component in facts.workloads
        and facts.workloads[component].is_complete
        and facts.workloads[component].replicas == desired
        for component, desired in facts.desired_replicas.items()
    )


# Any: a status as JSON, here and below.
def cluster_status(
    facts: ClusterFacts,
    previous: Mapping[str, object],
    progress: dict[str, object] | None,
    now: str,
) -> dict[str, Any]:
    """Return the whole status. A field whose value is None is absent."""
    phase = _phase(facts)
    executor = facts.workloads.get(EXECUTOR)
    status: dict[str, Any] = {
        "observedGeneration": facts.generation,
        "phase": phase.name,
        "message": cut(phase.message) or None,
        "replicas": executor.present if executor else 0,
        "selector": naming.selector_text(naming.component_selector(facts.name, EXECUTOR)),
        "executorsReady": _share(facts, EXECUTOR),
        "schedulersReady": _share(facts, SCHEDULER),
        "endpoints": _endpoints(facts),
        "progress": progress,
    }
    for component in (EXECUTOR, SCHEDULER, HEAD, STATE):
        status[component] = _counts(facts, component)
    if facts.spec.is_accepted:
        status |= {"image": facts.spec.image or None, "version": facts.spec.version or None}
    else:
        status |= {key: previous.get(key) for key in ("image", "version")}
    status["conditions"] = [
        dated(each, previous, facts.generation, now)
        for each in (
            *_conditions(facts, phase),
            _accepted(facts, previous),
            _loaded(facts, previous),
        )
    ]
    return status


def status_patch(
    previous: Mapping[str, object], desired: Mapping[str, object]
) -> dict[str, object]:
    """Return the merge patch from one status to another, empty if they are equal."""
    changed: dict[str, Any] = {}
    for key, value in desired.items():
        before = previous.get(key)
        if value == before:
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            removed = dict.fromkeys(before.keys() - value.keys())
            inner = status_patch(before, {**value, **removed})
            if inner:
                changed[key] = inner
        elif value is not None or key in previous:
            changed[key] = value
    return changed


def _phase(facts: ClusterFacts) -> _Phase:
    spec, decision = facts.spec, facts.decision
    invalid = [*spec.problems, *spec.refused]
    if facts.is_terminating:
        return _Phase("Deleting", "the cluster is being deleted")
    if spec.is_paused:
        return _Phase("Paused", "spec.paused is set: the operator changes nothing")
    if invalid and not facts.workloads:
        return _Phase("Failed", "; ".join(invalid))
    if spec.is_stopped:
        left = sum(workload.present for workload in facts.workloads.values())
        if left:
            return _Phase("Scaling", f"stopping {left} pods")
        return _Phase("Stopped", "spec.stopped is set: no pods are running")
    if is_ready(facts) and not decision.is_rolling and not decision.is_scaling:
        return _Phase("Ready", "; ".join([*invalid, *facts.failures]))
    problem = decision.problem or _problem(facts)
    if not facts.progress.was_ready:
        return _creating(facts, problem)
    if facts.observed.unreachable:
        return _Phase("Degraded", _unreachable(facts))
    serves = _serves(facts)
    if problem and problem.reason in _PENDING and serves and not _has_lost_pods(facts):
        # Pods that were just requested are waiting for a node or for a volume.
        return _Phase("Scaling", problem.message)
    if problem or not serves:
        message = problem.message if problem else "no executor or no scheduler is ready"
        return _Phase("Degraded" if serves else "Failed", message)
    if decision.is_rolling:
        return _Phase("RollingOut", decision.rollout)
    return _scaling(facts)


def _scaling(facts: ClusterFacts) -> _Phase:
    decision, missing = facts.decision, _missing(facts)
    is_scaling = decision.is_scaling or _is_executor_count_changing(facts)
    if is_scaling or (missing and not _has_lost_pods(facts)):
        waiting = f"waiting for: {', '.join(missing)}" if missing else "executors start or stop"
        return _Phase("Scaling", decision.scaling or waiting)
    if missing:
        return _Phase("Degraded", f"not ready: {', '.join(missing)}")
    return _Phase("Scaling", "stopping pods that are no longer needed")


def _unreachable(facts: ClusterFacts) -> str:
    names = ", ".join(f"Service '{name}'" for name in facts.observed.unreachable)
    return "; ".join([f"{names} is missing or out of date", *facts.failures])


def _creating(facts: ClusterFacts, problem: WorkloadProblem | None) -> _Phase:
    if facts.failures and not facts.workloads:
        return _Phase("Pending", "; ".join(facts.failures))
    if problem is None:
        missing = ", ".join(_missing(facts))
        return _Phase(
            "Creating", f"waiting for: {missing}" if missing else "; ".join(facts.failures)
        )
    return _Phase("Pending" if problem.reason in _PENDING else "Failed", problem.message)


def _conditions(facts: ClusterFacts, phase: _Phase) -> list[dict[str, object]]:
    decision = facts.decision
    problem = decision.problem or _problem(facts)
    # `kubectl wait` for Ready is used before queries, and a stopped cluster serves none.
    is_whole = is_ready(facts) and not facts.spec.is_stopped
    ready = is_whole or _serves_meanwhile(facts, phase)
    reason = phase.name
    if facts.observed.unreachable and facts.progress.was_ready:
        reason = "ServiceNotApplied"
    elif ready:
        reason = "Serving"
    elif problem:
        reason = problem.reason
    conditions = [
        condition("Ready", ready, *(("AllReady", "") if is_whole else (reason, phase.message))),
        listed("SpecValid", facts.spec.problems, "Valid", "Invalid"),
        _limits(facts),
        listed("Reconciled", facts.failures, "Applied", "NotApplied"),
    ]
    if decision.problem:
        message = f"stopped; pods not yet replaced keep serving: {decision.problem.message}"
        conditions.append(condition("RolledOut", False, decision.problem.reason, message))
    elif decision.is_rolling:
        conditions.append(condition("RolledOut", False, "InProgress", decision.rollout))
    elif missing := _not_rolled_out(facts):
        conditions.append(condition("RolledOut", False, phase.name, missing))
    else:
        conditions.append(condition("RolledOut", True, "Complete", ""))
    return conditions


def _serves_meanwhile(facts: ClusterFacts, phase: _Phase) -> bool:
    """Return whether a cluster that was ready serves while pods are replaced or added.

    A rollout that stopped, or whose next spec is invalid, changes nothing for clients.
    """
    if not facts.progress.was_ready or facts.observed.unreachable or facts.is_terminating:
        return False
    is_halted = bool(facts.progress.step) and not facts.spec.is_accepted
    is_changing = facts.decision.is_rolling or is_halted or phase.name == "Scaling"
    return is_changing and not facts.spec.is_stopped and _serves(facts)


def refusal_text(facts: ClusterFacts) -> str:
    """Return that schedulers refuse the operator, why, which release they run, and what to do."""
    running = [pod for pod in facts.observed.pods if pod.component == SCHEDULER and pod.is_ready]
    releases = sorted({pod.release for pod in running if pod.release})
    workload = facts.workloads.get(SCHEDULER)
    name = workload.name if workload else naming.object_name(facts.name, SCHEDULER)
    return (
        f"a scheduler (of {', '.join(releases) or 'an unknown release'}) refuses the operator: "
        f"{facts.refusal}. A rollout goes on by the readiness of pods, and "
        "drains and autoscaling wait. If this lasts after the rollout, the schedulers run another "
        "release or read another token: check the image and the Secret of the token, and run "
        f"`kubectl --namespace {facts.namespace} rollout restart deployment {name}`"
    )


def _accepted(facts: ClusterFacts, previous: Mapping[str, object]) -> dict[str, object]:
    """Return the condition that schedulers accept the operator."""
    name = "OperatorAccepted"
    if facts.spec.is_stopped or facts.refusal is None:
        return kept(name, previous, facts.spec.is_stopped)
    if facts.refusal:
        return condition(name, False, "Refused", refusal_text(facts))
    return condition(name, True, "Accepted", "")


def _loaded(facts: ClusterFacts, previous: Mapping[str, object]) -> dict[str, object]:
    """Return the condition with the parts of the manifest that are not ready, and why."""
    parts = facts.unready_parts
    if facts.spec.is_stopped or parts is None:
        return kept("Loaded", previous, facts.spec.is_stopped)
    reason = "Loading" if all(part.is_loading for part in parts) else "InError"
    return listed("Loaded", [str(part) for part in parts], "AllLoaded", reason)


def _not_rolled_out(facts: ClusterFacts) -> str:
    """Return which components have no pod with the newest template, or '' if there are none."""
    if facts.spec.is_stopped or not any(facts.desired_replicas.values()):
        return "no pods are running"
    if not facts.progress.was_ready and not is_ready(facts):
        return "the cluster has not been ready yet"
    without = [
        component
        for component, desired in facts.desired_replicas.items()
        if desired and (component not in facts.workloads or not facts.workloads[component].updated)
    ]
    return f"no updated pods of: {', '.join(without)}" if without else ""


def _limits(facts: ClusterFacts) -> dict[str, object]:
    if facts.spec.refused:
        return condition("WithinLimits", False, "Refused", "; ".join(facts.spec.refused))
    return listed("WithinLimits", facts.spec.clamped, "Within", "Clamped")


def _problem(facts: ClusterFacts) -> WorkloadProblem | None:
    """Return why something is not running, the most severe reason first."""
    of_pods = [
        pod.problem
        for pod in facts.observed.pods
        if pod.problem and not pod.is_ready and not pod.is_terminating
    ]
    of_workloads = [workload.problem for workload in facts.workloads.values() if workload.problem]
    # A pod that waits for its volume reports only that it cannot be scheduled.
    waiting = [problem for problem in of_pods if problem.reason in _PENDING]
    running = [problem for problem in of_pods if problem.reason not in _PENDING]
    claims = facts.observed.claim_problems
    return next(iter([*running, *claims, *waiting, *of_workloads]), None)


def _serves(facts: ClusterFacts) -> bool:
    def has_ready(component: str) -> bool:
        workload = facts.workloads.get(component)
        desired = facts.desired_replicas.get(component)
        return not desired or (workload is not None and workload.ready > 0)

    return has_ready(SCHEDULER) and has_ready(EXECUTOR)


def _has_lost_pods(facts: ClusterFacts) -> bool:
    """Return whether fewer pods are ready than when the cluster was last ready."""
    full = facts.progress.full or facts.desired_replicas
    return any(
        _ready(facts, component) < min(full.get(component, 0), desired)
        for component, desired in facts.desired_replicas.items()
    )


def _is_executor_count_changing(facts: ClusterFacts) -> bool:
    workload = facts.workloads.get(EXECUTOR)
    if workload is None:
        return False
    desired = facts.desired_replicas.get(EXECUTOR, 0)
    return workload.replicas != desired or workload.present != workload.replicas


def _missing(facts: ClusterFacts) -> list[str]:
    return [
        f"{component} {_share(facts, component)}{_not_created(facts, component)}"
        for component, desired in facts.desired_replicas.items()
        if component not in facts.workloads or facts.workloads[component].ready < desired
    ]


def _not_created(facts: ClusterFacts, component: str) -> str:
    """Point to the events of a StatefulSet that cannot create pods, for example due to a quota."""
    workload = facts.workloads.get(component)
    if workload is None or not workload.is_observed or workload.present >= workload.replicas:
        return ""
    return f" (not all pods are created; if this lasts, see the events of '{workload.name}')"


def _ready(facts: ClusterFacts, component: str) -> int:
    workload = facts.workloads.get(component)
    return workload.ready if workload else 0


def _share(facts: ClusterFacts, component: str) -> str:
    return f"{_ready(facts, component)}/{facts.desired_replicas.get(component, 0)}"


def _counts(facts: ClusterFacts, component: str) -> dict[str, int] | None:
    workload = facts.workloads.get(component)
    if workload is None and not facts.desired_replicas.get(component):
        return None
    return {
        "wanted": facts.desired_replicas.get(component, 0),
        "current": workload.present if workload else 0,
        "ready": workload.ready if workload else 0,
        "updated": workload.updated if workload else 0,
    }


def _endpoints(facts: ClusterFacts) -> dict[str, str]:
    host, secure = f"{facts.name}.{facts.namespace}.svc", facts.spec.has_tls
    return {
        "http": f"{'https' if secure else 'http'}://{host}:{naming.HTTP_PORT}",
        "flight": f"{'grpc+tls' if secure else 'grpc'}://{host}:{naming.FLIGHT_PORT}",
        "metrics": f"http://{host}:{naming.METRICS_PORT}",
    }
