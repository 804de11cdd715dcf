"""When a new scheduler gets its first request: once an executor works for it.

A scheduler that has just started has given its catalog to no executor yet, and refuses statements
until it has. Its readiness must not depend on executors later: it takes jobs, and tells what is
wrong, also while none is there. So the startup probe asks, which is not asked again once it passed.
"""

from typing import Any

from caraway_operator.kube.kinds import Object

_GATE = "/v1/ready?min_ready_executors=1"
_PATIENCE_S = 3600
"""One that waits for executors, or for a dataset, is of no less use than one that restarts."""


def gated(objects: list[Object], has_executors: bool) -> list[Object]:
    """Return the objects; schedulers wait for an executor if there shall be any."""
    if not has_executors:
        return objects
    return [_gated(each) if each["kind"] == "Deployment" else each for each in objects]


def _gated(deployment: Object) -> Object:
    spec = deployment["spec"]
    template = spec["template"]
    pod = template["spec"]
    containers = [_patient(each) for each in pod["containers"]]
    pod = {**pod, "containers": containers}
    return {**deployment, "spec": {**spec, "template": {**template, "spec": pod}}}


# Any: a container as JSON has it.
def _patient(container: dict[str, Any]) -> dict[str, Any]:
    probe = container.get("startupProbe") or {}
    handler = probe.get("httpGet") or {}
    if handler.get("path") != "/health":
        # The user has said something else.
        return container
    period_s = probe.get("periodSeconds", 10)
    waiting = {
        **probe,
        "httpGet": {**handler, "path": _GATE},
        "failureThreshold": max(probe.get("failureThreshold", 3), _PATIENCE_S // period_s),
    }
    return {**container, "startupProbe": waiting}
