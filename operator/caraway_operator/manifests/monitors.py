"""Monitors of the Prometheus operator, where it is installed and they are asked for."""

from caraway_operator import naming
from caraway_operator.manifests.meta import Object, metadata
from caraway_operator.manifests.wanted import POD_MONITOR, SERVICE_MONITOR, Wanted

_API_VERSION = "monitoring.coreos.com/v1"


def objects(wanted: Wanted) -> list[Object]:
    """Return the monitors."""
    given = wanted.spec.monitoring
    made = []
    if given.service_monitor and SERVICE_MONITOR in wanted.kinds:
        made.append(_monitor(wanted, SERVICE_MONITOR, naming.SCHEDULER, "endpoints"))
    if given.pod_monitor and POD_MONITOR in wanted.kinds:
        made.append(_monitor(wanted, POD_MONITOR, naming.EXECUTOR, "podMetricsEndpoints"))
    return made


def _monitor(wanted: Wanted, kind: str, component: str, endpoints: str) -> Object:
    given = wanted.spec.monitoring
    return {
        "apiVersion": _API_VERSION,
        "kind": kind,
        "metadata": metadata(
            wanted, naming.of(wanted.name, component), component, labels=given.labels
        ),
        "spec": {
            "selector": {"matchLabels": naming.selector(wanted.name, component)},
            endpoints: [{"port": "metrics", "path": "/metrics", "interval": given.interval}],
        },
    }
