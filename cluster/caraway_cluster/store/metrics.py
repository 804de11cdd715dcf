"""What a store counts, and its page of metrics."""

from collections import defaultdict
from collections.abc import Iterable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST


class StoreTallies:
    """Counts of one store since it started."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], int] = defaultdict(int)
        self.stored_bytes = 0
        self.read_bytes = 0

    def page(self, free_bytes: int, disk_bytes: int) -> bytes:
        """Return the metrics as Prometheus text."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Page(self, free_bytes, disk_bytes))
        return generate_latest(registry)


class _Page(Collector):
    def __init__(self, tallies: StoreTallies, free_bytes: int, disk_bytes: int) -> None:
        self._tallies = tallies
        self._free_bytes = free_bytes
        self._disk_bytes = disk_bytes

    def collect(self) -> Iterable[Metric]:
        tallies = self._tallies
        requests = CounterMetricFamily(
            "caraway_store_requests", "Requests answered.", labels=("method", "status")
        )
        for labels, count in tallies.requests.items():
            requests.add_metric(labels, count)
        yield requests
        yield CounterMetricFamily(
            "caraway_store_stored_bytes", "Bytes of chunks stored.", tallies.stored_bytes
        )
        yield CounterMetricFamily(
            "caraway_store_read_bytes", "Bytes of chunks read.", tallies.read_bytes
        )
        yield GaugeMetricFamily(
            "caraway_store_disk_free_bytes", "Free bytes of its disk.", self._free_bytes
        )
        yield GaugeMetricFamily("caraway_store_disk_bytes", "Bytes of its disk.", self._disk_bytes)
