"""All objects of a cluster, in the order in which they are created."""

from caraway_operator.manifests import (
    accounts,
    budgets,
    configs,
    executor,
    head,
    monitors,
    policies,
    scheduler,
    services,
    state,
)
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object

_BUILDERS = (
    accounts.objects,
    configs.objects,
    services.objects,
    policies.objects,
    budgets.objects,
    state.objects,
    head.objects,
    scheduler.objects,
    executor.objects,
    monitors.objects,
)


def objects(desired: DesiredCluster) -> list[Object]:
    """Return all objects of a cluster except Secrets, which are created once."""
    return [made for build in _BUILDERS for made in build(desired)]
