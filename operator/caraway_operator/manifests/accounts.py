"""ServiceAccounts: identities without rights in Kubernetes, and without a token in the pod."""

from caraway_operator import naming
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import Wanted

_SYSTEM = "system"


def objects(wanted: Wanted) -> list[Object]:
    """Return the accounts: one of those who reach data, one of the rest."""
    made = [_account(wanted, naming.of(wanted.name, _SYSTEM), {})]
    if wanted.spec.service_account.create:
        annotations = wanted.spec.service_account.annotations
        made.append(_account(wanted, name(wanted, naming.SCHEDULER), annotations))
    return made


def name(wanted: Wanted, component: str) -> str:
    """Return the account of a component's pods."""
    if component in (naming.HEAD, naming.STATE):
        return naming.of(wanted.name, _SYSTEM)
    account = wanted.spec.service_account
    return account.name or (wanted.name if account.create else "default")


def _account(wanted: Wanted, name: str, annotations: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(wanted, name, annotations=annotations),
        "automountServiceAccountToken": False,
    }
