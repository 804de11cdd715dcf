"""ServiceMonitor and PodMonitor, if enabled and if the Prometheus operator is installed."""

from caraway_operator import naming
from caraway_operator.manifests.desired import POD_MONITOR, SERVICE_MONITOR, DesiredCluster
from caraway_operator.manifests.meta import Object, metadata

_API_VERSION = "monitoring.coreos.com/v1"


def objects(desired: DesiredCluster) -> list[Object]:
    """Return the monitors."""
    given = desired.spec.monitoring
    made = []
    if given.service_monitor and SERVICE_MONITOR in desired.kinds:
        made.append(_monitor(desired, SERVICE_MONITOR, naming.SCHEDULER, "endpoints"))
    if given.pod_monitor and POD_MONITOR in desired.kinds:
        made.append(_monitor(desired, POD_MONITOR, naming.EXECUTOR, "podMetricsEndpoints"))
    return made


def _monitor(desired: DesiredCluster, kind: str, component: str, endpoints: str) -> Object:
    given = desired.spec.monitoring
    return {
        "apiVersion": _API_VERSION,
        "kind": kind,
        "metadata": metadata(
            desired, naming.object_name(desired.name, component), component, labels=given.labels
        ),
        "spec": {
            "selector": {"matchLabels": naming.component_selector(desired.name, component)},
            endpoints: [{"port": "metrics", "path": "/metrics", "interval": given.interval}],
        },
    }
