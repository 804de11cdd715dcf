"""The operator's metrics, read from its state when somebody asks."""

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

from caraway_core.durations import Durations
from caraway_operator.known import Known
from caraway_operator.kube.client import Kube
from caraway_operator.kube.objects import Objects

CONTENT_TYPE = exposition.CONTENT_TYPE_LATEST


@dataclass(slots=True)
class Tallies:
    """What is counted while the operator works."""

    looks: Counter[str] = field(default_factory=Counter)
    """By outcome: `ok`, `failed`."""
    durations: Durations = field(default_factory=Durations)
    is_leader: bool = False


def render(known: Known, objects: Objects, kube: Kube, tallies: Tallies) -> bytes:
    """Return the page as Prometheus text."""
    registry = CollectorRegistry()
    registry.register(_Page(list(collect(known, objects, kube, tallies))))
    process_collector.ProcessCollector(registry=registry)
    return exposition.generate_latest(registry)


def collect(known: Known, objects: Objects, kube: Kube, tallies: Tallies) -> Iterable[Metric]:
    """Read the metrics from the state."""
    yield GaugeMetricFamily(
        "caraway_operator_leader", "1 if this operator acts.", value=int(tallies.is_leader)
    )
    phases = Counter(
        str((cluster.get("status") or {}).get("phase") or "Unknown")
        for cluster in known.clusters.values()
    )
    clusters = GaugeMetricFamily(
        "caraway_operator_clusters", "Clusters, by phase.", labels=("phase",)
    )
    for phase, count in sorted(phases.items()):
        clusters.add_metric((phase,), count)
    yield clusters
    looks = CounterMetricFamily(
        "caraway_operator_reconciles", "Looks at clusters, by outcome.", labels=("outcome",)
    )
    for outcome, count in sorted(tallies.looks.items()):
        looks.add_metric((outcome,), count)
    yield looks
    duration = HistogramMetricFamily(
        "caraway_operator_reconcile_duration_ms", "Time of looks, in milliseconds."
    )
    durations = tallies.durations
    duration.add_metric((), durations.cumulative(()), sum_value=durations.sums_ms[()])
    yield duration
    yield GaugeMetricFamily(
        "caraway_operator_objects", "Objects that are watched.", value=len(objects)
    )
    yield CounterMetricFamily(
        "caraway_operator_kubernetes_requests", "Requests to Kubernetes.", value=kube.requests
    )
    yield CounterMetricFamily(
        "caraway_operator_kubernetes_writes", "Those that write.", value=kube.writes
    )


class _Page(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
