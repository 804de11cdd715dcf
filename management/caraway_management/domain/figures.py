"""The figures of a project over a window, from samples of its metrics."""

from collections.abc import Mapping, Sequence
from typing import Any

from caraway_management.domain import monitoring, samples
from caraway_management.domain.monitoring import Sample

WINDOWS_S: Mapping[str, int] = {
    "1m": 60,
    "5m": 300,
    "15m": 900,
    "30m": 1_800,
    "1h": 3_600,
    "6h": 6 * 3_600,
    "24h": 24 * 3_600,
    "7d": 7 * 24 * 3_600,
}
MOST_POINTS = 100

# Figures that runtimes do not export; the names are those of the peer.
_UNKNOWN_OF_POD = (
    "disk_read_bytes",
    "disk_read_operations",
    "disk_write_bytes",
    "disk_write_operations",
)


def summarize(found: Sequence[Sample]) -> dict[str, Any]:
    """Return the figures of samples, the oldest first; None where nothing is known.

    Counters are how much they grew in the window. The others are those of the last sample.
    """
    last: Mapping[str, object] = found[-1].values if found else {}
    return {
        "metrics": {
            "pod": {
                "cpu_usage_percent": _rounded(monitoring.cpu(found).value),
                "memory_usage_bytes": _whole(last, samples.MEMORY_BYTES),
                "memory_limit_bytes": _whole(last, samples.MEMORY_LIMIT_BYTES),
                "disk_usage_bytes": _whole(last, samples.DISK_BYTES),
                "disk_limit_bytes": _whole(last, samples.DISK_LIMIT_BYTES),
                **dict.fromkeys(_UNKNOWN_OF_POD),
            }
        },
        "ingestion": {
            "rows_ingested": _grown(found, samples.ROWS_INGESTED),
            "bytes_ingested": None,
        },
        "requests": {
            "http_requests": _grown(found, samples.HTTP_REQUESTS),
            "http_5xx": _grown(found, samples.HTTP_5XX),
            "queries": _grown(found, samples.QUERIES),
            "query_failures": _grown(found, samples.QUERY_FAILURES),
        },
        "cluster": {
            "active_executors_count": _whole(last, samples.EXECUTORS),
            "instances": _whole(last, samples.INSTANCES),
            "instances_ready": _whole(last, samples.INSTANCES_READY),
        },
    }


def points(found: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return the course of some figures: at most 100 points, of equally many samples each."""
    size = max(1, -(-len(found) // MOST_POINTS))
    ends = range(size - 1, len(found), size)
    return [
        {
            "timestamp": found[end].at.isoformat(),
            "cpu_usage_percent": _rounded(
                monitoring.cpu(found[max(0, end - size) : end + 1]).value
            ),
            "memory_usage_bytes": _whole(found[end].values, samples.MEMORY_BYTES),
            "active_executors_count": _whole(found[end].values, samples.EXECUTORS),
            "queries": _grown(found[max(0, end - size) : end + 1], samples.QUERIES),
        }
        for end in ends
    ]


def _grown(found: Sequence[Sample], name: str) -> int | None:
    if len(found) < 2 or not any(name in sample.values for sample in found):
        return None
    return round(monitoring.increase(found, name))


def _whole(values: Mapping[str, Any], name: str) -> int | None:
    """Return a number of bytes or of things: metrics pages write `1000.0`."""
    return None if name not in values else round(values[name])


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
