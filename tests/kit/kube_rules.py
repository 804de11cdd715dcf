"""The defaults and validation rules of a Kubernetes API, for the objects of the operator.

They follow the validation of Kubernetes 1.36. The rules of Services, ConfigMaps and StatefulSets
were compared with a real server (docs/decisions/0026).
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from caraway_kube.api.kinds import Object

_ADDRESSES = itertools.count(10)
_NODE_PORTS = itertools.count(30000)
_TYPES = ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")
_MUTABLE = {
    "replicas",
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
    "revisionHistoryLimit",
}


class ApiError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def admitted(made: Object, known: Object | None) -> Object:
    """Return the object as the API stores it.

    Raises:
        ApiError: the object is invalid.
    """
    owners = made["metadata"].get("ownerReferences") or ()
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        raise ApiError(422, "Only one reference can have Controller set to true")
    rule = _RULES.get(made.get("kind", ""))
    if rule is not None:
        try:
            rule(made, known)
        except (AttributeError, KeyError, TypeError) as exc:
            raise ApiError(422, f"{made['kind']} is malformed: {exc!r}") from exc
    return made


def _service(made: Object, known: Object | None) -> None:
    spec = made.setdefault("spec", {})
    before = (known or {}).get("spec") or {}
    _default(spec, type="ClusterIP", sessionAffinity="None")
    if spec["type"] not in _TYPES:
        raise ApiError(422, f"spec.type: Unsupported value: {spec['type']!r}")
    for port in spec.get("ports") or ():
        _default(port, protocol="TCP", targetPort=port.get("port"))
    _valid_ports(spec)
    if spec["type"] == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(name, None)
        return
    had = before.get("clusterIP") if before.get("type") != "ExternalName" else None
    # An omitted address keeps its previous value, including "None".
    _default(spec, clusterIP=had or f"10.96.0.{next(_ADDRESSES)}")
    if had and spec["clusterIP"] != had:
        raise ApiError(422, "spec.clusterIPs[0]: Invalid value: may not change once set")
    spec["clusterIPs"] = [spec["clusterIP"]]
    _default(spec, internalTrafficPolicy="Cluster", ipFamilies=["IPv4"])
    _default(spec, ipFamilyPolicy="SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        _default(spec, externalTrafficPolicy="Cluster")
        for port in spec.get("ports") or ():
            port.setdefault("nodePort", next(_NODE_PORTS))
    elif any("nodePort" in port for port in spec.get("ports") or ()):
        raise ApiError(422, "spec.ports[0].nodePort: may not be used when `type` is 'ClusterIP'")


def _valid_ports(spec: Object) -> None:
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        raise ApiError(422, "spec.ports: Required value")
    for port in ports:
        number = port.get("port")
        if not isinstance(number, int) or not 0 < number < 65536:
            raise ApiError(422, f"spec.ports[0].port: Invalid value: {number}")
        if port["protocol"] not in ("TCP", "UDP", "SCTP"):
            raise ApiError(422, f"spec.ports[0].protocol: Unsupported value {port['protocol']!r}")
        if len(ports) > 1 and not port.get("name"):
            raise ApiError(422, "spec.ports[0].name: Required value")
    _unique("spec.ports[].name", (port.get("name") for port in ports))
    _unique("spec.ports[]", ((port["port"], port["protocol"]) for port in ports))


def _budget(made: Object, known: Object | None) -> None:
    spec = made["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        raise ApiError(422, "spec: minAvailable and maxUnavailable cannot be both set")


def _config_map(made: Object, known: Object | None) -> None:
    if known is None or not known.get("immutable"):
        return
    if not made.get("immutable") or made.get("data") != known.get("data"):
        raise ApiError(422, "field is immutable when `immutable` is set")


def _secret(made: Object, known: Object | None) -> None:
    made.setdefault("type", "Opaque")
    if known is not None and made["type"] != known.get("type", "Opaque"):
        raise ApiError(422, "type: field is immutable")
    _config_map(made, known)


def _deployment(made: Object, known: Object | None) -> None:
    spec = made["spec"]
    _default(spec, replicas=1, progressDeadlineSeconds=600, revisionHistoryLimit=10)
    _default(spec, strategy={"type": "RollingUpdate"})
    _template(spec)
    if known is not None and spec["selector"] != known["spec"]["selector"]:
        raise ApiError(422, "spec.selector: field is immutable")


def _stateful_set(made: Object, known: Object | None) -> None:
    spec = made["spec"]
    _default(spec, replicas=1, podManagementPolicy="OrderedReady", revisionHistoryLimit=10)
    _default(spec, updateStrategy={"type": "RollingUpdate"})
    _default(spec["updateStrategy"], rollingUpdate={"partition": 0})
    retained = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    _default(spec, persistentVolumeClaimRetentionPolicy=retained)
    for claim in spec.get("volumeClaimTemplates") or ():
        _default(claim, apiVersion="v1", kind="PersistentVolumeClaim", status={"phase": "Pending"})
    _template(spec)
    there = (known or {}).get("spec") or spec
    fixed = (spec.keys() | there.keys()) - _MUTABLE
    if any(spec.get(name) != there.get(name) for name in fixed):
        raise ApiError(422, "updates to statefulset spec for fields other than ... are forbidden")


def _template(spec: Object) -> None:
    template = spec["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    selected = (spec.get("selector") or {}).get("matchLabels") or {}
    if not selected or not selected.items() <= labels.items():
        raise ApiError(422, "spec.template.metadata.labels: `selector` does not match")
    pod = template["spec"]
    _default(pod, restartPolicy="Always", dnsPolicy="ClusterFirst", securityContext={})
    _default(pod, schedulerName="default-scheduler", terminationGracePeriodSeconds=30)
    if not pod.get("containers"):
        raise ApiError(422, "spec.template.spec.containers: Required value")
    volumes = {each.get("name") for each in pod.get("volumes") or ()}
    volumes |= {each["metadata"]["name"] for each in spec.get("volumeClaimTemplates") or ()}
    _unique("volumes[].name", (each.get("name") for each in pod.get("volumes") or ()))
    _unique("containers[].name", (each.get("name") for each in pod["containers"]))
    for container in pod["containers"]:
        _container(container, volumes)


def _container(container: Object, volumes: set[Any]) -> None:
    if not container.get("name") or not container.get("image"):
        raise ApiError(422, "containers[0]: name and image are required")
    _default(container, terminationMessagePath="/dev/termination-log", resources={})
    _default(container, imagePullPolicy="IfNotPresent", terminationMessagePolicy="File")
    for port in container.get("ports") or ():
        _default(port, protocol="TCP")
    mounts = container.get("volumeMounts") or ()
    _unique("volumeMounts[].mountPath", (each.get("mountPath") for each in mounts))
    _unique("ports[].name", (each.get("name") for each in container.get("ports") or ()))
    for each in mounts:
        if each.get("name") not in volumes:
            raise ApiError(422, f"volumeMounts[0].name: Not found: {each.get('name')!r}")
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        if name in container:
            _default(container[name], periodSeconds=10, timeoutSeconds=1)
            _default(container[name], successThreshold=1, failureThreshold=3)


def _default(of: Object, **defaults: Any) -> None:
    for key, value in defaults.items():
        if of.get(key) is None and value is not None:
            of[key] = value


def _unique(path: str, values: Iterable[Any]) -> None:
    for value, count in Counter(values).items():
        if count > 1 and value is not None:
            raise ApiError(422, f"{path}: Duplicate value: {value!r}")


_RULES: dict[str, Callable[[Object, Object | None], None]] = {
    "ConfigMap": _config_map,
    "Deployment": _deployment,
    "PodDisruptionBudget": _budget,
    "Secret": _secret,
    "Service": _service,
    "StatefulSet": _stateful_set,
}
