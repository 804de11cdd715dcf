"""PodDisruptionBudgets, which limit how many pods are evicted at once."""

from caraway_operator import naming
from caraway_operator.manifests.desired import DesiredCluster
from caraway_operator.manifests.meta import Object, metadata


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the budgets of the components with more than one pod."""
    made = []
    if desired.scheduler_count > 1:
        made.append(_budget(desired, naming.SCHEDULER, {"minAvailable": 1}))
    if desired.executor_count > 1:
        made.append(_budget(desired, naming.EXECUTOR, {"maxUnavailable": 1}))
    return made


def _budget(desired: DesiredCluster, component: str, allowed: Object) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(desired, naming.object_name(desired.name, component), component),
        "spec": {
            **allowed,
            "selector": {"matchLabels": naming.component_selector(desired.name, component)},
            # A pod that is not ready would block the drain of its node forever.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
