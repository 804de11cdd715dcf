"""Pod templates. They meet the restricted Pod Security Standard."""

from caraway_kube import naming
from caraway_kube.resources.pods import ComponentSpec
from caraway_operator.manifests import accounts, secrets
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, all_labels, checksum, keyed

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
    desired: DesiredCluster,
    pods: ComponentSpec,
    component: str,
    *,
    containers: list[Object],
    volumes: list[Object],
    grace_s: int,
    manifest: str | None = None,
) -> Object:
    """Return the pod template of a component. It changes with `manifest` and with its Secrets."""
    annotations = dict(pods.pod_annotations)
    if manifest is not None:
        annotations[MANIFEST_CHECKSUM] = checksum(manifest)
    if seen := secrets.checksum(desired, component):
        annotations[SECRETS_CHECKSUM] = seen
    meta: Object = {"labels": {**pods.pod_labels, **all_labels(desired, component)}}
    if annotations:
        meta["annotations"] = annotations
    return {
        "metadata": meta,
        "spec": {
            "serviceAccountName": accounts.name(desired, component),
            "automountServiceAccountToken": False,
            # The variables of Services named `caraway...` could be taken for settings.
            "enableServiceLinks": False,
            "securityContext": _SECURITY,
            "terminationGracePeriodSeconds": grace_s,
            "topologySpreadConstraints": _spread(desired, pods, component),
            "containers": containers,
            "volumes": keyed(volumes, pods.volumes, "name"),
            **_placement(pods),
            **_pull_secrets(desired),
        },
    }


def _placement(pods: ComponentSpec) -> Object:
    given: Object = {
        "nodeSelector": dict(pods.node_selector),
        "affinity": pods.affinity,
        "tolerations": list(pods.tolerations),
        "priorityClassName": pods.priority_class_name,
    }
    return {key: value for key, value in given.items() if value}


def _pull_secrets(desired: DesiredCluster) -> Object:
    names = desired.spec.image.pull_secrets
    return {"imagePullSecrets": [{"name": name} for name in names]} if names else {}


def _spread(desired: DesiredCluster, pods: ComponentSpec, component: str) -> list[Object]:
    found = {"labelSelector": {"matchLabels": naming.component_selector(desired.name, component)}}
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
