"""Keeps a new scheduler from serving until an executor works for it.

A scheduler that has just started rejects statements until an executor has its catalog. Later, its
readiness must not depend on executors: without them it still accepts jobs and reports errors. So
the startup probe checks for an executor, because Kubernetes stops running it once it succeeds.
"""

from typing import Any

from caraway_operator.kube.kinds import Object

_PATH = "/v1/ready?min_ready_executors=1"
_PATIENCE_S = 3600
"""Restarting a scheduler that waits for executors or for a dataset does not help."""


def with_gate(objects: list[Object], has_executors: bool) -> list[Object]:
    """Return the objects, with gated schedulers if the cluster has executors."""
    if not has_executors:
        return objects
    return [_gated(each) if each["kind"] == "Deployment" else each for each in objects]


def _gated(deployment: Object) -> Object:
    spec = deployment["spec"]
    template = spec["template"]
    pod = template["spec"]
    containers = [_with_startup_probe(each) for each in pod["containers"]]
    pod = {**pod, "containers": containers}
    return {**deployment, "spec": {**spec, "template": {**template, "spec": pod}}}


# Any: a container as JSON.
def _with_startup_probe(container: dict[str, Any]) -> dict[str, Any]:
    probe = container.get("startupProbe") or {}
    handler = probe.get("httpGet") or {}
    if handler.get("path") != "/health":
        # The user has replaced the probe.
        return container
    period_s = probe.get("periodSeconds", 10)
    gate = {
        **probe,
        "httpGet": {**handler, "path": _PATH},
        "failureThreshold": max(probe.get("failureThreshold", 3), _PATIENCE_S // period_s),
    }
    return {**container, "startupProbe": gate}
