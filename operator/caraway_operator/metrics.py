"""The operator's Prometheus metrics, collected from its state on each scrape."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, exposition, process_collector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from caraway_core.process.durations import Durations
from caraway_kube.api.client import KubeClient
from caraway_operator.kube.object_cache import ObjectCache
from caraway_operator.watching.resource_cache import ResourceCache

CONTENT_TYPE = exposition.CONTENT_TYPE_LATEST


@dataclass(slots=True)
class ReconcileStats:
    """Counts and durations of reconciliations."""

    reconciles: Counter[str] = field(default_factory=Counter)
    """By outcome: `ok` or `failed`."""
    durations: Durations = field(default_factory=Durations)
    is_leader: bool = False


def render(
    resources: ResourceCache, objects: ObjectCache, kube: KubeClient, stats: ReconcileStats
) -> bytes:
    """Return the metrics in the Prometheus text format."""
    registry = CollectorRegistry()
    registry.register(_Page(list(collect(resources, objects, kube, stats))))
    process_collector.ProcessCollector(registry=registry)
    return exposition.generate_latest(registry)


def collect(
    resources: ResourceCache, objects: ObjectCache, kube: KubeClient, stats: ReconcileStats
) -> Iterable[Metric]:
    """Collect the metrics from the operator's state."""
    yield GaugeMetricFamily(
        "caraway_operator_leader", "1 if this operator holds the Lease.", value=int(stats.is_leader)
    )
    phases = Counter(
        str((cluster.get("status") or {}).get("phase") or "Unknown")
        for cluster in resources.clusters.values()
    )
    clusters = GaugeMetricFamily(
        "caraway_operator_clusters", "Clusters, by phase.", labels=("phase",)
    )
    for phase, count in sorted(phases.items()):
        clusters.add_metric((phase,), count)
    yield clusters
    reconciles = CounterMetricFamily(
        "caraway_operator_reconciles", "Reconciliations, by outcome.", labels=("outcome",)
    )
    for outcome, count in sorted(stats.reconciles.items()):
        reconciles.add_metric((outcome,), count)
    yield reconciles
    duration = HistogramMetricFamily(
        "caraway_operator_reconcile_duration_ms", "Duration of reconciliations, in milliseconds."
    )
    durations = stats.durations
    duration.add_metric((), durations.cumulative(()), sum_value=durations.sums_ms[()])
    yield duration
    yield GaugeMetricFamily("caraway_operator_objects", "Watched objects.", value=len(objects))
    yield CounterMetricFamily(
        "caraway_operator_kubernetes_requests",
        "Requests to the Kubernetes API.",
        value=kube.requests,
    )
    yield CounterMetricFamily(
        "caraway_operator_kubernetes_writes",
        "Requests to the Kubernetes API that write.",
        value=kube.writes,
    )


class _Page(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
