"""Renders the metrics page from the state of the scheduler."""

import os
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata

from prometheus_client import CollectorRegistry, ProcessCollector, exposition
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from caraway_core.concurrency import tasks
from caraway_core.process.durations import Labels
from caraway_gateway.metrics import acceleration as acceleration_metrics
from caraway_gateway.metrics import cluster as cluster_metrics
from caraway_gateway.metrics import embeddings as embedding_metrics
from caraway_gateway.metrics import engines as engine_metrics
from caraway_gateway.metrics import jobs as job_metrics
from caraway_gateway.metrics import models as model_metrics
from caraway_gateway.metrics import quotas as quota_metrics
from caraway_gateway.metrics import rerankers as reranker_metrics
from caraway_gateway.metrics import search as search_metrics
from caraway_gateway.services import Services
from caraway_scheduler.catalog.states import DatasetState
from caraway_serving.metric_families import Families

CONTENT_TYPE = exposition.CONTENT_TYPE_LATEST
_LOAD_STATES = {
    "initializing": 0, "ready": 1, "disabled": 2, "error": 3, "refreshing": 4, "shuttingdown": 5,
}  # fmt: skip


def registry(services: Services, prefix: str = "") -> CollectorRegistry:
    """Return the metrics registry of this process; `prefix` precedes each of its own names."""
    found = CollectorRegistry()
    found.register(_State(services, prefix))
    ProcessCollector(registry=found)
    return found


def render(found: CollectorRegistry) -> bytes:
    """Return the metrics page in the Prometheus text format."""
    return exposition.generate_latest(found)


class _State(Collector):
    """A collector that reads all metrics from the services at scrape time."""

    def __init__(self, services: Services, prefix: str) -> None:
        self._services = services
        self._families = Families(prefix)

    def collect(self) -> Iterable[Metric]:
        yield from self._queries()
        yield from self._http()
        yield from self._components()
        yield from self._cache()
        yield from engine_metrics.collect(self._services.engines(), self._families)
        yield from cluster_metrics.collect(self._services, self._families)
        yield from job_metrics.collect(self._services.jobs, self._families)
        yield from model_metrics.collect(self._services.models, self._families)
        yield from model_metrics.collect_workers(self._services.workers.runs, self._families)
        yield from acceleration_metrics.collect(self._services.accelerations, self._families)
        yield from embedding_metrics.collect(self._services.embeddings, self._families)
        yield from search_metrics.collect(self._services.search, self._families)
        yield from reranker_metrics.collect(self._services.rerankers, self._families)
        yield from quota_metrics.collect(self._services.quotas, self._families)
        yield self._data_directory()
        yield self._build()

    def _data_directory(self) -> Metric:
        size = self._services.data_size
        return self._families.gauges(
            "data_directory_size_bytes",
            "Bytes on disk of the data directory of this process.",
            (),
            {} if size is None or size.last is None else {(): size.last},
        )

    def _queries(self) -> Iterable[Metric]:
        tallies, queries = self._services.tallies, self._services.queries
        protocol = ("protocol",)
        yield self._families.counter(
            "query_executions", "Statements run.", protocol, tallies.query_executions
        )
        yield self._families.counter(
            "query_failures", "Statements failed.", ("protocol", "error"), tallies.query_failures
        )
        yield self._families.counter(
            "query_returned_bytes", "Bytes of answers sent.", protocol, tallies.query_returned_bytes
        )
        yield self._families.counter(
            "query_returned_rows", "Rows of answers sent.", protocol, tallies.query_returned_rows
        )
        yield self._families.histogram(
            "query_duration_ms",
            "Duration of statements, in milliseconds.",
            protocol,
            tallies.query_durations,
        )
        yield self._families.histogram(
            "query_first_row_ms",
            "Time from the start of statements to their first rows, in milliseconds.",
            protocol,
            tallies.query_first_rows,
        )
        yield self._families.gauge(
            "query_active_count", "Statements that run or wait.", len(queries.active)
        )
        yield self._families.gauge("query_queued_count", "Statements that wait for a slot.",
                          queries.admission.queued)  # fmt: skip

    def _http(self) -> Iterable[Metric]:
        tallies = self._services.tallies
        labels = ("method", "path", "status")
        yield self._families.counter(
            "http_requests", "HTTP requests.", labels, tallies.http_requests
        )
        yield self._families.histogram("http_requests_duration_ms",
                              "Duration of HTTP requests, in milliseconds.", labels,
                              tallies.http_durations)  # fmt: skip
        yield self._families.counter(
            "http_requests_limited",
            "HTTP requests rejected by a limit: too many per second, or too long.",
            ("limit",),
            tallies.limited_requests,
        )
        for connection in self._services.connections:
            if connection.name in ("http", "flight"):
                yield self._families.gauge(f"runtime_{connection.name}_server_started",
                                  f"Whether the {connection.name} server is up.",
                                  int(connection.status == "Ready"))  # fmt: skip

    def _components(self) -> Iterable[Metric]:
        catalog = self._services.catalog
        state = GaugeMetricFamily(
            self._families.name("dataset_load_state"),
            "0 initializing, 1 ready, 2 disabled, 3 error, 4 refreshing, 5 shutting down.",
            labels=("dataset",),
        )
        for name, dataset in catalog.datasets.items():
            state.add_metric((name,), _LOAD_STATES[dataset.status])
        yield state
        yield self._families.gauges(
            "dataset_active_count",
            "Datasets that are ready, including during a refresh.",
            ("engine",),
            _active(catalog.datasets.values()),
        )
        views = GaugeMetricFamily(
            self._families.name("view_load_state"),
            "State of views, with the values of dataset_load_state.",
            labels=("view",),
        )
        for name, view in catalog.views.items():
            views.add_metric((name,), _LOAD_STATES[view.status])
        yield views
        yield self._families.gauge(
            "catalog_version", "Version of the current catalog snapshot.", catalog.version
        )
        yield self._families.counter(
            "background_failures",
            "Failures of background tasks; the log has their causes.",
            ("work",),
            {(kind,): count for kind, count in tasks.FAILURES.items()},
        )
        yield self._families.gauge("secrets_store_load_duration_ms", "Time to read the secrets.",
                          self._services.tallies.secrets_load_ms)  # fmt: skip

    def _cache(self) -> Iterable[Metric]:
        cache = self._services.queries.cache
        if cache is None:
            return
        yield self._families.gauge(
            "results_cache_max_size_bytes",
            "Maximum size of the results cache, in bytes.",
            cache.settings.max_size_bytes,
        )
        yield self._families.gauge(
            "results_cache_size_bytes", "Bytes in the results cache.", cache.size_bytes
        )
        yield self._families.gauge(
            "results_cache_items_count", "Answers in the results cache.", len(cache)
        )
        yield self._families.counter(
            "results_cache_requests", "Lookups in the results cache.", (), {(): cache.requests}
        )
        yield self._families.counter("results_cache_hits", "Lookups that found an answer.", (),
                            {(): cache.hits})  # fmt: skip

    def _build(self) -> Metric:
        return InfoMetricFamily(
            self._families.name("caraway_build"),
            "This build.",
            value={
                "version": metadata.version("caraway"),
                "python": platform.python_version(),
                "datafusion": metadata.version("datafusion"),
                "cores": str(os.cpu_count()),
            },
        )


def _active(datasets: Iterable[DatasetState]) -> Mapping[Labels, float]:
    """Count the readable datasets by acceleration engine; `None` counts those without one."""
    found: dict[Labels, float] = {("None",): 0, ("arrow",): 0, ("file",): 0}
    for state in datasets:
        if state.status in ("ready", "refreshing"):
            acceleration = state.dataset.acceleration
            found[acceleration.engine if acceleration else "None",] += 1
    return found
