"""Reads how a project's runtime is from the objects that the operator and Kubernetes keep."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from caraway_kube.api.kinds import Object
from caraway_kube.resources import quantities
from caraway_management.deployers.kubernetes.objects import DEPLOYMENT_ANNOTATION
from caraway_management.deployers.protocol import Instance
from caraway_management.domain.deployments import Code, Observed, Phase, Problem

_SHORTAGES: Sequence[tuple[re.Pattern[str], Code]] = (
    (re.compile(r"[Ii]nsufficient cpu|exceeded quota.*cpu"), Code.INSUFFICIENT_CPU),
    (re.compile(r"[Ii]nsufficient memory|exceeded quota.*memory"), Code.INSUFFICIENT_MEMORY),
    (
        re.compile(r"[Ii]nsufficient ephemeral-storage|PersistentVolumeClaim|exceeded quota.*stor"),
        Code.INSUFFICIENT_STORAGE,
    ),
    (re.compile(r"[Tt]oo many pods|exceeded quota.*pods"), Code.INSUFFICIENT_INSTANCES),
)
_MESSAGES = {
    Code.INSUFFICIENT_CPU: "the cluster has too little CPU left; it starts when there is enough",
    Code.INSUFFICIENT_MEMORY: (
        "the cluster has too little memory left; it starts when there is enough"
    ),
    Code.INSUFFICIENT_STORAGE: "the cluster has no storage left; it starts when there is some",
    Code.INSUFFICIENT_INSTANCES: "the cluster takes no more instances; it starts when it does",
    Code.POD_EXCEEDS_NODE_CAPACITY: (
        "no node of the cluster is large enough; deploy with less CPU or memory"
    ),
}
_STUCK = frozenset(
    {
        "CrashLoopBackOff",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
_IMAGE_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName"})
_LONGEST = 500


def observe(cluster: Object, pods: Sequence[Object], largest: Mapping[str, float]) -> Observed:
    """Return the observed state of a cluster and its pods.

    `largest` is the most CPU and memory that any node has; without entries nothing is compared.
    """
    metadata, status = cluster["metadata"], cluster.get("status") or {}
    deployment = (metadata.get("annotations") or {}).get(DEPLOYMENT_ANNOTATION, "")
    endpoints = status.get("endpoints") or {}
    is_current = status.get("observedGeneration") == metadata.get("generation")
    phase, problem = Phase.STARTING, None
    if is_current and status.get("phase") == "Ready":
        phase = Phase.READY
    elif is_current and status.get("phase") == "Failed":
        phase = Phase.FAILED
        problem = Problem(Code.UNABLE_TO_START, _line(status.get("message") or "it failed"))
    elif is_current:
        problem = shortage(pods, largest) or _crash(pods)
    return Observed(
        phase,
        int(deployment) if deployment.isdecimal() else None,
        problem,
        endpoints.get("http"),
        endpoints.get("flight"),
        endpoints.get("metrics"),
    )


def shortage(pods: Sequence[Object], largest: Mapping[str, float]) -> Problem | None:
    """Return what the pods that cannot be placed are short of."""
    for pod in pods:
        for condition in (pod.get("status") or {}).get("conditions") or ():
            if condition.get("type") != "PodScheduled" or condition.get("status") != "False":
                continue
            code = _shortage_code(condition.get("message") or "")
            if code is None:
                continue
            if _exceeds(pod, largest):
                code = Code.POD_EXCEEDS_NODE_CAPACITY
            return Problem(code, _MESSAGES[code])
    return None


def instances(pods: Sequence[Object]) -> list[Instance]:
    """Return the pods of a runtime, as a list shows them."""
    found = []
    for pod in sorted(pods, key=lambda each: str(each["metadata"]["name"])):
        status = pod.get("status") or {}
        started = status.get("startTime")
        found.append(
            Instance(
                pod["metadata"]["name"],
                "ready" if _is_ready(status) else str(status.get("phase", "Pending")).lower(),
                datetime.fromisoformat(started) if started else None,
            )
        )
    return found


def _shortage_code(message: str) -> Code | None:
    return next((code for pattern, code in _SHORTAGES if pattern.search(message)), None)


def _exceeds(pod: Object, largest: Mapping[str, float]) -> bool:
    """Return whether a pod requests more than any node has."""

    for name, most in largest.items():
        wanted = sum(
            float(quantities.number(str(requests[name])))
            for container in pod["spec"].get("containers", ())
            if name in (requests := (container.get("resources") or {}).get("requests") or {})
        )
        if wanted > most:
            return True
    return False


def _crash(pods: Sequence[Object]) -> Problem | None:
    """Return why a pod cannot start, if it has tried more than once."""
    for pod in pods:
        for container in (pod.get("status") or {}).get("containerStatuses") or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            reason = waiting.get("reason")
            if reason not in _STUCK:
                continue
            if reason in _IMAGE_REASONS:
                text = "the image cannot be pulled; check registry, image and image_tag"
                return Problem(Code.UNABLE_TO_START, text)
            ended = (container.get("lastState") or {}).get("terminated") or {}
            words = ended.get("message") or ended.get("reason") or "it ends right after its start"
            return Problem(Code.UNABLE_TO_START, _line(f"the runtime cannot start: {words}"))
    return None


def _is_ready(status: Mapping[str, Any]) -> bool:
    return any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in status.get("conditions") or ()
    )


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]
