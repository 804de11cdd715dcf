"""Merges a desired object with the fields of the live object that an update must keep. Pure.

The operator owns every field, except those that the API server allocates and the metadata of other
tools. So fields that are added by hand are removed by the next write.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from caraway_kube.api.kinds import Object
from caraway_kube.naming import GROUP
from caraway_operator.kube import comparing

KEYS = f"{GROUP}/applied-keys"
"""The annotation that lists the applied labels and annotations, so that they can be removed."""
RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""Set on a template by `kubectl rollout restart`. Removing it would restart all pods."""
_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_HEADLESS = "None"
_WITH_NODE_PORTS = frozenset({"NodePort", "LoadBalancer"})
_TOP = frozenset({"apiVersion", "kind", "metadata", "status"})
_OF_ACCOUNT = ("imagePullSecrets", "secrets")


def keys(metadata: Mapping[str, Any]) -> str:
    """Return the value of the annotation `KEYS` for this metadata."""
    found = {part: sorted(metadata.get(part) or ()) for part in ("annotations", "labels")}
    return json.dumps(found, separators=(",", ":"))


def merged(desired: Object, live: Object) -> Object:
    """Return the update of a live object: `desired`, with the fields of `live` that are kept."""
    live_metadata = live["metadata"]
    metadata = {**desired["metadata"], "uid": live_metadata["uid"]}
    metadata["resourceVersion"] = live_metadata["resourceVersion"]
    before = _keys_before(live_metadata)
    for part in ("annotations", "labels"):
        mine = metadata.get(part) or {}
        held = live_metadata.get(part) or {}
        theirs = {key: held[key] for key in held if key not in before[part]}
        if theirs or mine:
            metadata[part] = {**theirs, **mine}
    if live_metadata.get("finalizers"):
        metadata["finalizers"] = live_metadata["finalizers"]
    mine = metadata.get("ownerReferences") or []
    uids = {each["uid"] for each in mine}
    others = [
        each for each in live_metadata.get("ownerReferences") or () if each["uid"] not in uids
    ]
    if mine or others:
        metadata["ownerReferences"] = [*mine, *others]
    return _with_allocated({**desired, "metadata": metadata}, live)


def essence(live: Object, desired: Object) -> object:
    """Return the owned fields of a live object: all that `merged` does not keep from it."""
    live_metadata, mine = live["metadata"], desired["metadata"]
    held: dict[str, object] = {key: value for key, value in live.items() if key not in _TOP}
    if live["kind"] == "ServiceAccount":
        held = {key: value for key, value in held.items() if key not in _OF_ACCOUNT}
    spec = held.get("spec")
    if isinstance(spec, Mapping):
        held["spec"] = _essence_of_spec(live["kind"], spec, desired.get("spec") or {})
    owners = live_metadata.get("ownerReferences") or ()
    return {
        **held,
        "annotations": _chosen(live_metadata.get("annotations"), mine.get("annotations")),
        "labels": _chosen(live_metadata.get("labels"), mine.get("labels")),
        "owner": [each for each in owners if each in (mine.get("ownerReferences") or ())],
    }


def settled(desired: Object, live: Object | None) -> Object:
    """Return the object; a StatefulSet keeps its claim sizes, because claims are expanded."""
    live_spec = (live or {}).get("spec") or {}
    templates = live_spec.get("volumeClaimTemplates")
    if desired["kind"] != "StatefulSet" or not templates:
        return desired
    if not comparing.covers(_without_sizes(desired["spec"]), _without_sizes(live_spec)):
        return desired
    sizes = {each["metadata"]["name"]: each["spec"].get("resources") for each in templates}
    kept = [
        {**each, "spec": {**each["spec"], "resources": sizes[each["metadata"]["name"]]}}
        for each in desired["spec"]["volumeClaimTemplates"]
    ]
    return {**desired, "spec": {**desired["spec"], "volumeClaimTemplates": kept}}


def must_recreate(desired: Object, live: Object) -> bool:
    """Return whether an update would silently ignore a change of an immutable field."""
    if desired["kind"] != "Service":
        return False
    live_spec = live.get("spec") or {}
    # The API server fills in a missing address with the live one, even if that is "None".
    return bool(live_spec.get("clusterIP")) and _is_headless(live_spec) != _is_headless(
        desired["spec"]
    )


def _with_allocated(body: Object, live: Object) -> Object:
    live_spec = live.get("spec") or {}
    match body["kind"]:
        case "ServiceAccount":
            return {**{key: live[key] for key in _OF_ACCOUNT if key in live}, **body}
        case "Service":
            return {**body, "spec": _service(body["spec"], live_spec)}
        case "Deployment" | "StatefulSet":
            return {**body, "spec": _restarted(body["spec"], live_spec)}
    return body


def _service(spec: Object, live_spec: Mapping[str, Any]) -> Object:
    made = dict(spec)
    carried = [key for key in _ADDRESSES if live_spec.get(key) and live_spec.get("clusterIP")]
    if spec.get("type") == "LoadBalancer" == live_spec.get("type"):
        carried += ["healthCheckNodePort", "loadBalancerClass"]
    for key in carried:
        if key in live_spec:
            made.setdefault(key, live_spec[key])
    if spec.get("type") in _WITH_NODE_PORTS:
        numbers = {_of_port(port): port.get("nodePort") for port in live_spec.get("ports") or ()}
        made["ports"] = [_numbered(port, numbers.get(_of_port(port))) for port in spec["ports"]]
    return made


def _of_port(port: Mapping[str, object]) -> tuple[object, object]:
    return port.get("port"), port.get("protocol")


def _numbered(port: Object, node_port: int | None) -> Object:
    return {**port, "nodePort": node_port} if node_port else port


def _restarted(spec: Object, live_spec: Mapping[str, Any]) -> Object:
    held = ((live_spec.get("template") or {}).get("metadata") or {}).get("annotations") or {}
    if RESTARTED not in held:
        return spec
    template = spec["template"]
    annotations = {**(template["metadata"].get("annotations") or {}), RESTARTED: held[RESTARTED]}
    metadata = {**template["metadata"], "annotations": annotations}
    return {**spec, "template": {**template, "metadata": metadata}}


def _essence_of_spec(kind: str, spec: Mapping[str, Any], desired: Mapping[str, object]) -> object:
    if kind == "Service":
        left_out = {*_ADDRESSES, "healthCheckNodePort"} | ({"loadBalancerClass"} - desired.keys())
        held = {key: value for key, value in spec.items() if key not in left_out}
        held["ports"] = [
            {key: value for key, value in port.items() if key != "nodePort"}
            for port in spec.get("ports") or ()
        ]
        return {**held, "isHeadless": _is_headless(spec)}
    if kind in ("Deployment", "StatefulSet"):
        template = dict(spec.get("template") or {})
        metadata = dict(template.get("metadata") or {})
        annotations = dict(metadata.get("annotations") or {})
        annotations.pop(RESTARTED, None)
        template["metadata"] = comparing.without_empty({**metadata, "annotations": annotations})
        return {**spec, "template": template}
    return spec


def _is_headless(spec: Mapping[str, object]) -> bool:
    return spec.get("clusterIP") == _HEADLESS


def _chosen(held: Mapping[str, object] | None, mine: Collection[str] | None) -> dict[str, object]:
    return {key: (held or {}).get(key) for key in mine or ()}


def _keys_before(metadata: Mapping[str, Any]) -> Mapping[str, Collection[str]]:
    none: dict[str, Collection[str]] = {"annotations": (), "labels": ()}
    try:
        found = json.loads((metadata.get("annotations") or {}).get(KEYS, "{}"))
        return none | {part: [*map(str, found.get(part) or ())] for part in none}
    except (ValueError, AttributeError, TypeError):
        # It was edited by hand. Nothing is removed then.
        return none


def _without_sizes(spec: Mapping[str, Any]) -> list[object]:
    return [
        {
            "name": template["metadata"]["name"],
            "spec": {
                key: value
                for key, value in template["spec"].items()
                if key not in ("resources", "status")
            },
        }
        for template in spec.get("volumeClaimTemplates") or ()
    ]
