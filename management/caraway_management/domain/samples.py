"""Samples of a project's metrics, from the metrics pages of its runtime.

The sampler writes one row of `metric_samples` per project about every 30 s, with the values of
`combine`. Monitors, the metrics route and reports read them by these names. A value that the
runtime does not export is absent, and so are all values but `instances` when none answered.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from caraway_kube.resources import quantities
from caraway_management.domain import plans

INSTANCES = "instances"
"""Instances that should run."""
INSTANCES_READY = "instances_ready"
"""Instances whose metrics page answered."""
CPU_SECONDS = "cpu_seconds"
"""CPU time of the processes. Grows, and begins again at 0 with each process."""
CPU_CORES = "cpu_cores"
"""Cores that they may use."""
MEMORY_BYTES = "memory_bytes"
MEMORY_LIMIT_BYTES = "memory_limit_bytes"
"""Not sampled: it follows from the config of the project, see `with_limits`."""
DISK_BYTES = "disk_bytes"
"""Bytes of the data directory; those of accelerated datasets where these are more, as they are
where something else stores them."""
DISK_LIMIT_BYTES = "disk_limit_bytes"
"""As the limit of memory."""
EXECUTORS = "executors"
"""Executors that are ready."""
QUERIES = "queries"
QUERY_FAILURES = "query_failures"
FLIGHT_FAILURES = "flight_failures"
HTTP_REQUESTS = "http_requests"
HTTP_5XX = "http_5xx"
LLM_FAILURES = "llm_failures"
ROWS_INGESTED = "rows_ingested"
"""Counters; they begin again at 0 when the runtime starts."""
QUERY_DURATIONS = "query_durations"
"""The histogram of durations: the number of statements up to each bound, in milliseconds."""
REFRESH_ERRORS = "refresh_errors"
"""A counter per dataset."""
DATASETS = "datasets"
"""The load state of each dataset: 0 initializing, 1 ready, ... 5 shutting down."""

_BUILD = "caraway_build"
_DATA_DIRECTORY = "data_directory_size_bytes"
_ACCELERATIONS = "dataset_acceleration_size_bytes"
_FLIGHT = frozenset({"flight", "flightsql"})
_SUMS: Mapping[str, str] = {
    "process_cpu_seconds_total": CPU_SECONDS,
    "process_resident_memory_bytes": MEMORY_BYTES,
    "engine_memory_bytes": MEMORY_BYTES,
    "scheduler_active_executors_count": EXECUTORS,
    "query_executions_total": QUERIES,
    "query_failures_total": QUERY_FAILURES,
    "http_requests_total": HTTP_REQUESTS,
    "llm_failures_total": LLM_FAILURES,
    "dataset_changes_applied_total": ROWS_INGESTED,
}
_COUNTERS = (QUERIES, QUERY_FAILURES, FLIGHT_FAILURES, HTTP_REQUESTS, HTTP_5XX, LLM_FAILURES)
_MOST_DATASETS = 1_000
_GB = 1000**3

Values = Mapping[str, Any]


def read(page: str) -> dict[str, Any]:
    """Return the values of one instance from its metrics page; names may have any prefix.

    Raises:
        ValueError: the page is not in the Prometheus text format.
    """
    families = list(text_string_to_metric_families(page))
    prefix = _prefix(families)
    sums: dict[str, float] = defaultdict(float, dict.fromkeys(_COUNTERS, 0.0))
    disk: dict[str, float] = defaultdict(float)
    durations: dict[str, float] = defaultdict(float)
    errors: dict[str, float] = {}
    states: dict[str, float] = {}
    for family in families:
        for name, labels, value, *_ in family.samples:
            name = name.removeprefix(prefix)
            if target := _SUMS.get(name):
                sums[target] += value
            elif name in (_DATA_DIRECTORY, _ACCELERATIONS):
                disk[name] += value
            if name == "query_failures_total" and labels.get("protocol") in _FLIGHT:
                sums[FLIGHT_FAILURES] += value
            elif name == "http_requests_total" and labels.get("status", "").startswith("5"):
                sums[HTTP_5XX] += value
            elif name == "query_duration_ms_bucket":
                durations[labels["le"]] += value
            elif name == "dataset_acceleration_refresh_errors_total":
                errors[labels["dataset"]] = value
            elif name == "dataset_load_state" and len(states) < _MOST_DATASETS:
                states[labels["dataset"]] = value
            elif name == f"{_BUILD}_info":
                sums[CPU_CORES] = float(labels.get("cores") or 0)
    if disk:
        sums[DISK_BYTES] = max(disk.values())
    kept: dict[str, Any] = dict(sums)
    return kept | {
        QUERY_DURATIONS: dict(durations),
        REFRESH_ERRORS: {name: count for name, count in errors.items() if count},
        DATASETS: states,
    }


def combine(parts: Sequence[Values], instances: int) -> dict[str, object]:
    """Return the sample of a project from the values of those of its instances that answered.

    Each instance counts for itself, except the state of a dataset: the highest is kept, so that
    an error on one instance shows.
    """
    combined: dict[str, object] = {INSTANCES: instances, INSTANCES_READY: len(parts)}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        if name == DATASETS:
            combined[name] = _merged(values, max)
        elif name == DISK_BYTES:
            # Instances of a cluster store together.
            combined[name] = max(values)
        elif isinstance(values[0], Mapping):
            combined[name] = _merged(values, lambda one, other: one + other)
        else:
            combined[name] = sum(values)
    return combined


def with_limits(values: Values, config: Mapping[str, Any]) -> Values:
    """Return values with the limits that follow from the config of the project."""
    storage_gb = config.get("storage_size_gb") or plans.MOST_STORAGE_GB
    limits: dict[str, object] = {DISK_LIMIT_BYTES: storage_gb * _GB}
    memory = (config.get("resources") or {}).get("limits", {}).get("memory")
    if memory is not None:
        # That of one instance.
        limits[MEMORY_LIMIT_BYTES] = float(quantities.number(memory)) * values.get(
            INSTANCES_READY, 1
        )
    return limits | dict(values)


def _merged(parts: Iterable[Mapping[str, float]], choose: Any) -> dict[str, float]:
    merged: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            merged[name] = choose(merged[name], value) if name in merged else value
    return merged


def _prefix(families: Iterable[Metric]) -> str:
    """Return the prefix of the runtime's names: what precedes the name of its build."""
    for family in families:
        if family.name.endswith(_BUILD):
            return family.name.removesuffix(_BUILD)
    return ""
