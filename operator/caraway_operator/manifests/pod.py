"""Pods: their template, with the restricted Pod Security Standard met."""

from caraway_operator import naming
from caraway_operator.manifests import accounts, secrets
from caraway_operator.manifests.meta import Object, all_labels, checksum, keyed
from caraway_operator.manifests.wanted import Wanted
from caraway_operator.resources.pods import Pods

USER = 10001
MANIFEST_CHECKSUM = f"{naming.GROUP}/manifest-checksum"
SECRETS_CHECKSUM = f"{naming.GROUP}/secrets-checksum"
_SECURITY: Object = {
    "fsGroup": USER,
    "fsGroupChangePolicy": "OnRootMismatch",
    "runAsGroup": USER,
    "runAsNonRoot": True,
    "runAsUser": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def template(
    wanted: Wanted,
    pods: Pods,
    component: str,
    *,
    containers: list[Object],
    volumes: list[Object],
    grace_s: int,
    manifest: str | None = None,
) -> Object:
    """Return the pods of a component. A change of `manifest` or of a Secret replaces them."""
    annotations = dict(pods.pod_annotations)
    if manifest is not None:
        annotations[MANIFEST_CHECKSUM] = checksum(manifest)
    if seen := secrets.checksum(wanted, component):
        annotations[SECRETS_CHECKSUM] = seen
    meta: Object = {"labels": {**pods.pod_labels, **all_labels(wanted, component)}}
    if annotations:
        meta["annotations"] = annotations
    return {
        "metadata": meta,
        "spec": {
            "serviceAccountName": accounts.name(wanted, component),
            "automountServiceAccountToken": False,
            # The variables of Services named `caraway...` look like our own.
            "enableServiceLinks": False,
            "securityContext": _SECURITY,
            "terminationGracePeriodSeconds": grace_s,
            "topologySpreadConstraints": _spread(wanted, pods, component),
            "containers": containers,
            "volumes": keyed(volumes, pods.volumes, "name"),
            **_placement(pods),
            **_pull_secrets(wanted),
        },
    }


def _placement(pods: Pods) -> Object:
    wishes: Object = {
        "nodeSelector": dict(pods.node_selector),
        "affinity": pods.affinity,
        "tolerations": list(pods.tolerations),
        "priorityClassName": pods.priority_class_name,
    }
    return {key: wish for key, wish in wishes.items() if wish}


def _pull_secrets(wanted: Wanted) -> Object:
    names = wanted.spec.image.pull_secrets
    return {"imagePullSecrets": [{"name": name} for name in names]} if names else {}


def _spread(wanted: Wanted, pods: Pods, component: str) -> list[Object]:
    found = {"labelSelector": {"matchLabels": naming.selector(wanted.name, component)}}
    given = pods.topology_spread_constraints
    if given is not None:
        return [{**found, **each} for each in given]
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            **found,
        }
    ]
