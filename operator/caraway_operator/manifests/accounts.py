"""ServiceAccounts. They have no permissions, and no token is mounted into pods."""

from caraway_kube import naming
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, metadata

_SYSTEM = "system"


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the accounts: one for schedulers and executors, one for the other pods."""
    resources = [_account(desired, naming.object_name(desired.name, _SYSTEM), {})]
    if desired.spec.service_account.create:
        annotations = desired.spec.service_account.annotations
        resources.append(_account(desired, name(desired, naming.SCHEDULER), annotations))
    return resources


def name(desired: DesiredCluster, component: str) -> str:
    """Return the account of a component's pods."""
    if component in (naming.HEAD, naming.STATE):
        return naming.object_name(desired.name, _SYSTEM)
    account = desired.spec.service_account
    return account.name or (desired.name if account.create else "default")


def _account(desired: DesiredCluster, name: str, annotations: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(desired, name, annotations=annotations),
        "automountServiceAccountToken": False,
    }
