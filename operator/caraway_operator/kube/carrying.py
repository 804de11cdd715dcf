"""What of a live object stays when the operator writes it, and what must be as declared. Pure.

Everything that an object says is the operator's, but for what the API allocates and what other
tools keep in metadata. So fields that somebody adds by hand are removed with the next write.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from caraway_operator.kube import comparing
from caraway_operator.kube.kinds import Object
from caraway_operator.naming import GROUP

KEYS = f"{GROUP}/applied-keys"
"""The annotation that lists our labels and annotations, so that dropped ones can be removed."""
RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""What `kubectl rollout restart` writes into a template. Removing it would restart all pods."""
_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_HEADLESS = "None"
_WITH_NODE_PORTS = frozenset({"NodePort", "LoadBalancer"})
_TOP = frozenset({"apiVersion", "kind", "metadata", "status"})
_OF_ACCOUNT = ("imagePullSecrets", "secrets")


def keys(metadata: Mapping[str, Any]) -> str:
    """Return the value of the annotation KEYS for an object with this metadata."""
    found = {part: sorted(metadata.get(part) or ()) for part in ("annotations", "labels")}
    return json.dumps(found, separators=(",", ":"))


def merged(wanted: Object, live: Object) -> Object:
    """Return the object to write over a live one: `wanted` with what stays of `live`."""
    there = live["metadata"]
    metadata = {**wanted["metadata"], "uid": there["uid"]}
    metadata["resourceVersion"] = there["resourceVersion"]
    before = _keys_before(there)
    for part in ("annotations", "labels"):
        mine = metadata.get(part) or {}
        held = there.get(part) or {}
        theirs = {key: held[key] for key in held if key not in before[part]}
        if theirs or mine:
            metadata[part] = {**theirs, **mine}
    if there.get("finalizers"):
        metadata["finalizers"] = there["finalizers"]
    mine = metadata.get("ownerReferences") or []
    uids = {each["uid"] for each in mine}
    others = [each for each in there.get("ownerReferences") or () if each["uid"] not in uids]
    if mine or others:
        metadata["ownerReferences"] = [*mine, *others]
    return _with_allocated({**wanted, "metadata": metadata}, live)


def essence(live: Object, wanted: Object) -> Any:
    """Return what must stay as it was written: all but what `merged` carries over."""
    there, mine = live["metadata"], wanted["metadata"]
    held: dict[str, Any] = {key: value for key, value in live.items() if key not in _TOP}
    if live["kind"] == "ServiceAccount":
        held = {key: value for key, value in held.items() if key not in _OF_ACCOUNT}
    spec = held.get("spec")
    if isinstance(spec, Mapping):
        held["spec"] = _essence_of_spec(live["kind"], spec, wanted.get("spec") or {})
    owners = there.get("ownerReferences") or ()
    return {
        **held,
        "annotations": _chosen(there.get("annotations"), mine.get("annotations")),
        "labels": _chosen(there.get("labels"), mine.get("labels")),
        "owner": [each for each in owners if each in (mine.get("ownerReferences") or ())],
    }


def settled(wanted: Object, live: Object | None) -> Object:
    """Return the object; a StatefulSet keeps the sizes of its claims, which grow one by one."""
    there = (live or {}).get("spec") or {}
    templates = there.get("volumeClaimTemplates")
    if wanted["kind"] != "StatefulSet" or not templates:
        return wanted
    if not comparing.covers(_without_sizes(wanted["spec"]), _without_sizes(there)):
        return wanted
    sizes = {each["metadata"]["name"]: each["spec"].get("resources") for each in templates}
    kept = [
        {**each, "spec": {**each["spec"], "resources": sizes[each["metadata"]["name"]]}}
        for each in wanted["spec"]["volumeClaimTemplates"]
    ]
    return {**wanted, "spec": {**wanted["spec"], "volumeClaimTemplates": kept}}


def must_be_remade(wanted: Object, live: Object) -> bool:
    """Tell whether a write would leave out, in silence, a field that the API never changes."""
    if wanted["kind"] != "Service":
        return False
    there = live.get("spec") or {}
    # The API fills an address that is left out with the one that there is, "None" included.
    return bool(there.get("clusterIP")) and _is_headless(there) != _is_headless(wanted["spec"])


def _with_allocated(body: Object, live: Object) -> Object:
    there = live.get("spec") or {}
    match body["kind"]:
        case "ServiceAccount":
            return {**{key: live[key] for key in _OF_ACCOUNT if key in live}, **body}
        case "Service":
            return {**body, "spec": _service(body["spec"], there)}
        case "Deployment" | "StatefulSet":
            return {**body, "spec": _restarted(body["spec"], there)}
    return body


def _service(spec: Object, there: Mapping[str, Any]) -> Object:
    made = dict(spec)
    carried = [key for key in _ADDRESSES if there.get(key) and there.get("clusterIP")]
    if spec.get("type") == "LoadBalancer" == there.get("type"):
        carried += ["healthCheckNodePort", "loadBalancerClass"]
    for key in carried:
        if key in there:
            made.setdefault(key, there[key])
    if spec.get("type") in _WITH_NODE_PORTS:
        numbers = {_of_port(port): port.get("nodePort") for port in there.get("ports") or ()}
        made["ports"] = [_numbered(port, numbers.get(_of_port(port))) for port in spec["ports"]]
    return made


def _of_port(port: Mapping[str, Any]) -> tuple[Any, Any]:
    return port.get("port"), port.get("protocol")


def _numbered(port: Object, node_port: int | None) -> Object:
    return {**port, "nodePort": node_port} if node_port else port


def _restarted(spec: Object, there: Mapping[str, Any]) -> Object:
    held = ((there.get("template") or {}).get("metadata") or {}).get("annotations") or {}
    if RESTARTED not in held:
        return spec
    template = spec["template"]
    annotations = {**(template["metadata"].get("annotations") or {}), RESTARTED: held[RESTARTED]}
    metadata = {**template["metadata"], "annotations": annotations}
    return {**spec, "template": {**template, "metadata": metadata}}


def _essence_of_spec(kind: str, spec: Mapping[str, Any], wanted: Mapping[str, Any]) -> Any:
    if kind == "Service":
        left_out = {*_ADDRESSES, "healthCheckNodePort"} | ({"loadBalancerClass"} - wanted.keys())
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


def _is_headless(spec: Mapping[str, Any]) -> bool:
    return spec.get("clusterIP") == _HEADLESS


def _chosen(held: Mapping[str, Any] | None, mine: Collection[str] | None) -> dict[str, Any]:
    return {key: (held or {}).get(key) for key in mine or ()}


def _keys_before(metadata: Mapping[str, Any]) -> Mapping[str, Collection[str]]:
    none: dict[str, Collection[str]] = {"annotations": (), "labels": ()}
    try:
        found = json.loads((metadata.get("annotations") or {}).get(KEYS, "{}"))
        return none | {part: [*map(str, found.get(part) or ())] for part in none}
    except (ValueError, AttributeError, TypeError):
        # Somebody edited it: nothing of theirs is taken for ours.
        return none


def _without_sizes(spec: Mapping[str, Any]) -> list[Any]:
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
