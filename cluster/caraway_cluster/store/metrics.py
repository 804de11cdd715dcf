"""The metrics of the chunk store."""

from collections import defaultdict
from collections.abc import Iterable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST


class StoreMetrics:
    """Counters of one store since it started."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], int] = defaultdict(int)
        self.stored_bytes = 0
        self.read_bytes = 0

    def render(self, free_bytes: int, disk_bytes: int) -> bytes:
        """Return the metrics in the Prometheus text format."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_StoreCollector(self, free_bytes, disk_bytes))
        return generate_latest(registry)


class _StoreCollector(Collector):
    def __init__(self, counters: StoreMetrics, free_bytes: int, disk_bytes: int) -> None:
        self._counters = counters
        self._free_bytes = free_bytes
        self._disk_bytes = disk_bytes

    def collect(self) -> Iterable[Metric]:
        counters = self._counters
        requests = CounterMetricFamily(
            "caraway_store_requests", "Requests served.", labels=("method", "status")
        )
        for labels, count in counters.requests.items():
            requests.add_metric(labels, count)
        yield requests
        yield CounterMetricFamily(
            "caraway_store_stored_bytes", "Bytes of chunks stored.", counters.stored_bytes
        )
        yield CounterMetricFamily(
            "caraway_store_read_bytes", "Bytes of chunks read.", counters.read_bytes
        )
        yield GaugeMetricFamily(
            "caraway_store_disk_free_bytes", "Free bytes of the disk.", self._free_bytes
        )
        yield GaugeMetricFamily("caraway_store_disk_bytes", "Size of the disk.", self._disk_bytes)
