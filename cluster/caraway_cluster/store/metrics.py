"""The metrics of the chunk store."""

from collections import defaultdict
from dataclasses import dataclass

from caraway_serving.metric_families import CONTENT_TYPE, Families, Page, Table, counter, gauge

__all__ = ["CONTENT_TYPE", "StoreMetrics"]


class StoreMetrics:
    """Counters of one store since it started."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, ...], int] = defaultdict(int)
        self.stored_bytes = 0
        self.read_bytes = 0

    def render(self, free_bytes: int, disk_bytes: int) -> bytes:
        """Return the metrics in the Prometheus text format."""
        state = _StoreState(self, free_bytes, disk_bytes)
        return Page(lambda: Families("caraway_store_").families_of(_STORE, state)).render()


@dataclass(frozen=True, slots=True)
class _StoreState:
    counters: StoreMetrics
    free_bytes: int
    disk_bytes: int


_STORE: Table[_StoreState] = (
    counter("requests", "Requests served.", "method status", lambda of: of.counters.requests),
    counter("stored_bytes", "Bytes of chunks stored.", "", lambda of: of.counters.stored_bytes),
    counter("read_bytes", "Bytes of chunks read.", "", lambda of: of.counters.read_bytes),
    gauge("disk_free_bytes", "Free bytes of the disk.", "", lambda of: of.free_bytes),
    gauge("disk_bytes", "Size of the disk.", "", lambda of: of.disk_bytes),
)  # fmt: skip
