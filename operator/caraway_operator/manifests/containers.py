"""Containers: command, environment, resources, security context and probes."""

from collections.abc import Sequence
from dataclasses import dataclass

from caraway_kube.resources.pods import ComponentSpec, ContainerResources, ProbesSpec, merged
from caraway_operator.manifests import sizing
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, keyed

_HANDLERS = {"exec", "grpc", "httpGet", "tcpSocket"}
WAIT_S = 50
"""How long processes keep a startup probe waiting while they start.

Each probe that fails is an event of the pod, so a healthy start should have one that succeeds.
"""
SECURITY: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}


@dataclass(frozen=True, slots=True)
class StartTimes:
    """When the first startup probe comes, how long it may take, and how many may fail."""

    delay_s: int = 5
    timeout_s: int = 3
    failures: int = 60


WAITING = StartTimes(timeout_s=WAIT_S + 10)
"""For probes that wait for `WAIT_S`."""


def container(
    desired: DesiredCluster,
    pods: ComponentSpec,
    name: str,
    *,
    arguments: Sequence[str],
    env: list[Object],
    ports: dict[str, int],
    probes: dict[str, Object],
    resources: ContainerResources,
    mounts: list[Object],
) -> Object:
    """Return a container of a component."""
    resource: Object = {
        "name": name,
        "image": image(desired, pods),
        "imagePullPolicy": desired.spec.image.pull_policy,
        "args": list(arguments),
        "env": keyed(env, pods.env, "name"),
        "ports": [
            {"name": port, "containerPort": number, "protocol": "TCP"}
            for port, number in ports.items()
        ],
        "resources": sizing.rendered(resources),
        "securityContext": SECURITY,
        # The last log lines then appear in the pod's status, and in the status of the cluster.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": keyed(mounts, pods.volume_mounts, "mountPath"),
        **probes,
    }
    if pods.env_from:
        resource["envFrom"] = list(pods.env_from)
    return resource


def image(desired: DesiredCluster, pods: ComponentSpec) -> str:
    """Return the image of a component: its own, or the cluster's."""
    shared, own = desired.spec.image, pods.image
    repository = own.repository or shared.repository
    if own.digest or (not own.tag and shared.digest and not own.repository):
        return f"{repository}@{own.digest or shared.digest}"
    return f"{repository}:{own.tag or shared.tag or desired.version}"


def variable(name: str, value: str) -> Object:
    """Return an environment variable with a value."""
    return {"name": name, "value": value}


def from_field(name: str, path: str) -> Object:
    """Return a variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def from_secret(name: str, secret: str, key: str) -> Object:
    """Return a variable with the value of a key of a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def http(path: str, port: str) -> Object:
    """Return a handler that requests a path of the container."""
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}}


def tcp(port: str) -> Object:
    """Return a handler that connects to a port of the container."""
    return {"tcpSocket": {"port": port}}


def fresh(file: str, age_s: int) -> Object:
    """Return a handler that fails once a file of the container is older than `age_s`."""
    # An image of an earlier release makes no such file, and must not be restarted for it.
    script = f"at=$(stat -c %Y {file} 2>/dev/null) || exit 0; [ $(($(date +%s) - at)) -lt {age_s} ]"
    return {"exec": {"command": ["sh", "-c", script]}}


def probes(
    over: ProbesSpec,
    *,
    startup: Object,
    readiness: Object,
    liveness: Object,
    start: StartTimes | None = None,
) -> Object:
    """Return the probes of a container, with the fields of the spec merged into them."""
    start = start or StartTimes()
    begun = _probe(startup, over.startup, 5, start.timeout_s, start.failures, start.delay_s)
    return {
        "startupProbe": begun,
        "readinessProbe": _probe(readiness, over.readiness, period=5, timeout=5, failures=2),
        # A process under load may answer slowly; one that hangs never answers.
        "livenessProbe": _probe(liveness, over.liveness, period=10, timeout=5, failures=6),
    }


def _probe(
    handler: Object, over: Object | None, period: int, timeout: int, failures: int, delay: int = 0
) -> Object:
    is_replaced = bool(_HANDLERS & (over or {}).keys() - handler.keys())
    base = {
        **({} if is_replaced else handler),
        **({"initialDelaySeconds": delay} if delay else {}),
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
        "successThreshold": 1,
    }
    return merged(base, over)
