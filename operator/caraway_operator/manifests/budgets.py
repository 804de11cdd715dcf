"""PodDisruptionBudgets: how many pods a node that drains may take away at once."""

from caraway_operator import naming
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import Wanted


def objects(wanted: Wanted) -> list[Object]:
    """Return the budgets of components that have more than one pod."""
    made = []
    if wanted.scheduler_count > 1:
        made.append(_budget(wanted, naming.SCHEDULER, {"minAvailable": 1}))
    if wanted.executor_count > 1:
        made.append(_budget(wanted, naming.EXECUTOR, {"maxUnavailable": 1}))
    return made


def _budget(wanted: Wanted, component: str, allowed: Object) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(wanted, naming.of(wanted.name, component), component),
        "spec": {
            **allowed,
            "selector": {"matchLabels": naming.selector(wanted.name, component)},
            # A pod that is not ready serves nobody, and would block the node for ever.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
