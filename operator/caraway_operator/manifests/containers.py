"""Containers: what runs, with which rights, and how kubelet finds out how it is."""

from collections.abc import Sequence

from caraway_operator.manifests import sizing
from caraway_operator.manifests.meta import Object, keyed
from caraway_operator.manifests.wanted import Wanted
from caraway_operator.resources.pods import Pods, Probes, Resources, merged

_HANDLERS = {"exec", "grpc", "httpGet", "tcpSocket"}
SECURITY: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}


def container(
    wanted: Wanted,
    pods: Pods,
    name: str,
    *,
    arguments: Sequence[str],
    env: list[Object],
    ports: dict[str, int],
    probes: dict[str, Object],
    resources: Resources,
    mounts: list[Object],
) -> Object:
    """Return a container of a component."""
    made: Object = {
        "name": name,
        "image": image(wanted, pods),
        "imagePullPolicy": wanted.spec.image.pull_policy,
        "args": list(arguments),
        "env": keyed(env, pods.env, "name"),
        "ports": [
            {"name": port, "containerPort": number, "protocol": "TCP"}
            for port, number in ports.items()
        ],
        "resources": sizing.rendered(resources),
        "securityContext": SECURITY,
        # What a process said last is then in the pod's status, and from there in the cluster's.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": keyed(mounts, pods.volume_mounts, "mountPath"),
        **probes,
    }
    if pods.env_from:
        made["envFrom"] = list(pods.env_from)
    return made


def image(wanted: Wanted, pods: Pods) -> str:
    """Return the image of a component: its own, or that of all pods."""
    shared, own = wanted.spec.image, pods.image
    repository = own.repository or shared.repository
    if own.digest or (not own.tag and shared.digest and not own.repository):
        return f"{repository}@{own.digest or shared.digest}"
    return f"{repository}:{own.tag or shared.tag or wanted.version}"


def variable(name: str, value: str) -> Object:
    return {"name": name, "value": value}


def from_field(name: str, path: str) -> Object:
    """Return a variable that holds a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def from_secret(name: str, secret: str, key: str) -> Object:
    """Return a variable that holds a key of a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def http(path: str, port: str) -> Object:
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}}


def tcp(port: str) -> Object:
    return {"tcpSocket": {"port": port}}


def probes(over: Probes, *, startup: Object, readiness: Object, liveness: Object) -> Object:
    """Return the probes of a container, with the fields of a spec merged over them."""
    return {
        "startupProbe": _probe(startup, over.startup, period=3, timeout=3, failures=100),
        "readinessProbe": _probe(readiness, over.readiness, period=5, timeout=5, failures=2),
        # A process under load may be slow to answer; one that hangs never does.
        "livenessProbe": _probe(liveness, over.liveness, period=10, timeout=5, failures=6),
    }


def _probe(
    handler: Object, over: Object | None, period: int, timeout: int, failures: int
) -> Object:
    is_replaced = bool(_HANDLERS & (over or {}).keys() - handler.keys())
    base = {
        **({} if is_replaced else handler),
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
        "successThreshold": 1,
    }
    return merged(base, over)
