"""All objects of a cluster, in the order in which they are best made."""

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
from caraway_operator.manifests.meta import Object
from caraway_operator.manifests.wanted import Wanted

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


def objects(wanted: Wanted) -> list[Object]:
    """Return the objects that a cluster consists of, but for Secrets, which are made once."""
    return [made for build in _BUILDERS for made in build(wanted)]
