"""Reads pods, workloads and claims into the values that decisions need."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from caraway_kube import naming
from caraway_kube.api.kinds import Object

_LASTING = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
WAITING_FOR_ROOM = frozenset({"Unschedulable", "FailedCreate"})
"""Reasons that pass as soon as other pods of the workload leave."""
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class WorkloadProblem:
    """Why a workload is not ready: a reason in CamelCase and a message."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod."""

    name: str
    uid: str
    component: str
    is_ready: bool
    revision: str = ""
    is_terminating: bool = False
    address: str = ""
    release: str = ""
    """The version of Caraway that it runs, as its label says."""
    is_started: bool = False
    """Its startup probes have succeeded."""
    problem: WorkloadProblem | None = None

    @property
    def ordinal(self) -> int:
        """The ordinal of a pod of a StatefulSet; -1 for other pods."""
        match = re.search(r"-(\d+)$", self.name)
        return int(match[1]) if match else -1


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """A StatefulSet or a Deployment."""

    name: str
    replicas: int
    """The applied number of replicas."""
    present: int
    ready: int
    updated: int
    is_observed: bool
    """The status is that of the newest spec."""
    template: str
    """Hash of the applied pod template."""
    revision: str = ""
    partition: int = 0
    problem: WorkloadProblem | None = None

    @property
    def is_complete(self) -> bool:
        """True if all pods have the newest template and are ready."""
        if not self.is_observed:
            return False
        return self.updated >= self.replicas and self.ready >= self.replicas == self.present


TEMPLATE_HASH = "caraway.dev/template-hash"


def is_left_behind(pod: Object) -> bool:
    """Return whether a pod has been replaced: a Deployment keeps pods that a node evicted."""
    component = (pod["metadata"].get("labels") or {}).get(naming.COMPONENT_LABEL)
    phase = (pod.get("status") or {}).get("phase")
    return component == naming.SCHEDULER and phase in ("Failed", "Succeeded")


def pod_view(pod: Object) -> PodView:
    """Read a pod."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels = metadata.get("labels") or {}
    return PodView(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        component=labels.get(naming.COMPONENT_LABEL, ""),
        is_ready=_condition(status, "Ready").get("status") == "True",
        revision=labels.get("controller-revision-hash", ""),
        is_terminating=bool(metadata.get("deletionTimestamp")),
        address=status.get("podIP") or "",
        release=labels.get(naming.VERSION_LABEL, ""),
        is_started=_is_started(status),
        problem=_problem(metadata["name"], status),
    )


def workload_view(object_: Object) -> WorkloadView:
    """Read a StatefulSet or a Deployment."""
    metadata, spec = object_["metadata"], object_["spec"]
    status = object_.get("status") or {}
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    stuck = _condition(status, "Progressing")
    failed = _condition(status, "ReplicaFailure")
    problem = None
    if failed.get("status") == "True":
        problem = WorkloadProblem(failed.get("reason", "ReplicaFailure"), failed.get("message", ""))
    elif stuck.get("status") == "False":
        problem = WorkloadProblem(stuck.get("reason", "NotProgressing"), stuck.get("message", ""))
    replicas = spec.get("replicas")
    return WorkloadView(
        name=metadata["name"],
        replicas=1 if replicas is None else replicas,
        present=status.get("replicas") or 0,
        ready=status.get("readyReplicas") or 0,
        updated=status.get("updatedReplicas") or 0,
        is_observed=(status.get("observedGeneration") or 0) >= (metadata.get("generation") or 0),
        template=(metadata.get("annotations") or {}).get(TEMPLATE_HASH, ""),
        revision=status.get("updateRevision") or "",
        partition=rolling.get("partition") or 0,
        problem=problem,
    )


def claim_problems(claims: Iterable[Object]) -> list[WorkloadProblem]:
    """Return the claims that are not bound."""
    return [
        WorkloadProblem(
            "VolumeNotBound",
            f"the claim {claim['metadata']['name']} has no volume "
            f"({(claim.get('status') or {}).get('phase', 'Pending')}); see its events, and check "
            "that the StorageClass "
            f"'{(claim.get('spec') or {}).get('storageClassName') or 'default'}' exists and can "
            "provision volumes",
        )
        for claim in claims
        if (claim.get("status") or {}).get("phase", "Pending") != "Bound"
    ]


def _is_started(status: Mapping[str, Any]) -> bool:
    containers = status.get("containerStatuses") or ()
    return bool(containers) and all(each.get("started") for each in containers)


def _problem(name: str, status: Mapping[str, Any]) -> WorkloadProblem | None:
    containers = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _LASTING:
            said = _last_words(container) or waiting.get("message") or ""
            return WorkloadProblem(
                waiting["reason"], _cut(f"pod {name}: {waiting['reason']}: {said}")
            )
    for container in containers:
        # The kubelet reports CrashLoopBackOff only after the second failure.
        if ended := _ended(container):
            reason = ended.get("reason") or "Error"
            return WorkloadProblem(reason, _cut(f"pod {name}: {_words(ended)}"))
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        reason = scheduled.get("reason") or "Unschedulable"
        return WorkloadProblem(
            reason, _cut(f"pod {name}: {reason}: {scheduled.get('message') or ''}")
        )
    if status.get("phase") == "Failed":
        reason = status.get("reason") or "Failed"
        return WorkloadProblem(reason, _cut(f"pod {name}: {reason}: {status.get('message') or ''}"))
    return None


def _ended(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how a container failed that is down or has not become ready since."""
    if container.get("ready"):
        return {}
    for state in ("state", "lastState"):
        found: Mapping[str, object] = (container.get(state) or {}).get("terminated") or {}
        if found.get("exitCode"):
            return found
    return {}


def _last_words(container: Mapping[str, Any]) -> str:
    ended = (container.get("lastState") or {}).get("terminated") or {}
    return _words(ended) if ended else ""


def _words(ended: Mapping[str, Any]) -> str:
    words = (ended.get("message") or "").strip().splitlines()
    code = f"{ended.get('reason') or 'ended'} with exit code {ended.get('exitCode')}"
    return f"{code}: {words[-1]}" if words else code


def _condition(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    for condition in status.get("conditions") or ():
        if condition.get("type") == type_:
            return dict(condition)
    return {}


def _cut(text: str) -> str:
    text = text.rstrip(": ")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
