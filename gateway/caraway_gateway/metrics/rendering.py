"""Renders the metrics page from the state of the scheduler."""

import os
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata

from prometheus_client import CollectorRegistry, ProcessCollector, exposition
from prometheus_client.core import InfoMetricFamily, Metric

from caraway_assist.search.rerankers import RerankerModels
from caraway_assist.search.results_cache import SearchResultsCache
from caraway_assist.search.service import SearchService
from caraway_core.concurrency import tasks
from caraway_core.concurrency.quotas import Quota
from caraway_core.ids import TableName
from caraway_core.process.durations import Labels
from caraway_gateway.metrics import acceleration as acceleration_metrics
from caraway_gateway.metrics import cluster as cluster_metrics
from caraway_gateway.metrics import embeddings as embedding_metrics
from caraway_gateway.metrics import engines as engine_metrics
from caraway_gateway.metrics import models as model_metrics
from caraway_gateway.services import Services
from caraway_scheduler.catalog.source_catalog_states import SourceCatalogState
from caraway_scheduler.catalog.states import DatasetState, ViewState
from caraway_scheduler.jobs.opening import Jobs
from caraway_scheduler.queries.cache import ResultsCache
from caraway_serving.metric_families import (
    CONTENT_TYPE,
    Families,
    Page,
    Table,
    counter,
    gauge,
    histogram,
)

__all__ = ["CONTENT_TYPE", "registry", "render"]
_LOAD_STATES = {
    "initializing": 0, "ready": 1, "disabled": 2, "error": 3, "refreshing": 4, "shuttingdown": 5,
}  # fmt: skip


def _is_up(services: Services, server: str) -> int | None:
    found = [each.status for each in services.connections if each.name == server]
    return int(found[0] == "Ready") if found else None


def _data_size(services: Services) -> int | None:
    size = services.data_size
    return None if size is None else size.last


_HTTP = "method path status"
_PROCESS: Table[Services] = (
    counter("query_executions", "Statements run.",
            "protocol", lambda of: of.tallies.query_executions),
    counter("query_failures", "Statements failed.",
            "protocol error", lambda of: of.tallies.query_failures),
    counter("query_returned_bytes", "Bytes of answers sent.",
            "protocol", lambda of: of.tallies.query_returned_bytes),
    counter("query_returned_rows", "Rows of answers sent.",
            "protocol", lambda of: of.tallies.query_returned_rows),
    histogram("query_duration_ms", "Duration of statements, in milliseconds.",
              "protocol", lambda of: of.tallies.query_durations),
    histogram("query_first_row_ms",
              "Time from the start of statements to their first rows, in milliseconds.",
              "protocol", lambda of: of.tallies.query_first_rows),
    gauge("query_active_count", "Statements that run or wait.",
          "", lambda of: len(of.queries.active)),
    gauge("query_queued_count", "Statements that wait for a slot.",
          "", lambda of: of.queries.admission.queued),
    counter("http_requests", "HTTP requests.", _HTTP, lambda of: of.tallies.http_requests),
    histogram("http_requests_duration_ms", "Duration of HTTP requests, in milliseconds.",
              _HTTP, lambda of: of.tallies.http_durations),
    counter("http_requests_limited",
            "HTTP requests rejected by a limit: too many per second, or too long.",
            "limit", lambda of: of.tallies.limited_requests),
    gauge("runtime_http_server_started", "Whether the http server is up.",
          "", lambda of: _is_up(of, "http")),
    gauge("runtime_flight_server_started", "Whether the flight server is up.",
          "", lambda of: _is_up(of, "flight")),
    gauge("dataset_load_state",
          "0 initializing, 1 ready, 2 disabled, 3 error, 4 refreshing, 5 shutting down.",
          "dataset", lambda of: _load_states(of.catalog.datasets)),
    gauge("dataset_active_count", "Datasets that are ready, including during a refresh.",
          "engine", lambda of: _active(of.catalog.datasets.values())),
    gauge("view_load_state", "State of views, with the values of dataset_load_state.",
          "view", lambda of: _load_states(of.catalog.views)),
    gauge("catalog_load_state", "State of source catalogs, with the values of dataset_load_state.",
          "catalog", lambda of: _load_states(of.catalog.source_catalogs.states)),
    gauge("catalog_version", "Version of the current catalog snapshot.",
          "", lambda of: of.catalog.version),
    counter("background_failures", "Failures of background tasks; the log has their causes.",
            "work", lambda _: tasks.FAILURES),
    gauge("secrets_store_load_duration_ms", "Time to read the secrets.",
          "", lambda of: of.tallies.secrets_load_ms),
    gauge("data_directory_size_bytes",
          "Bytes on disk of the data directory of this process.", "", _data_size),
)  # fmt: skip
_CACHE: Table[ResultsCache] = (
    gauge("results_cache_max_size_bytes", "Maximum size of the results cache, in bytes.",
          "", lambda of: of.settings.max_size_bytes),
    gauge("results_cache_size_bytes", "Bytes in the results cache.",
          "", lambda of: of.size_bytes),
    gauge("results_cache_items_count", "Answers in the results cache.", "", len),
    counter("results_cache_requests", "Lookups in the results cache.",
            "", lambda of: of.requests),
    counter("results_cache_hits", "Lookups that found an answer.", "", lambda of: of.hits),
)  # fmt: skip


def registry(services: Services, prefix: str = "") -> CollectorRegistry:
    """Return the metrics registry of this process; `prefix` precedes each of its own names."""
    families = Families(prefix)
    collector_registry = Page(lambda: _collect(services, families)).registry()
    ProcessCollector(registry=collector_registry)
    return collector_registry


def render(found: CollectorRegistry) -> bytes:
    """Return the metrics page in the Prometheus text format."""
    return exposition.generate_latest(found)


def _collect(services: Services, families: Families) -> Iterable[Metric]:
    """Yield all metrics, read from the services."""
    yield from families.families_of(_PROCESS, services)
    if services.queries.cache is not None:
        yield from families.families_of(_CACHE, services.queries.cache)
    yield from engine_metrics.collect(services.engines(), families)
    yield from cluster_metrics.collect(services, families)
    yield from _job_metrics(services.jobs, families)
    yield from model_metrics.collect(services.models, families)
    yield from model_metrics.collect_workers(services.workers.runs, families)
    yield from acceleration_metrics.collect(services.accelerations, families)
    yield from embedding_metrics.collect(services.embeddings, families)
    yield from _search_metrics(services.search, families)
    yield from _reranker_metrics(services.rerankers, families)
    yield from _quota_metrics(services.quotas, families)
    yield _build(families)


def _build(families: Families) -> Metric:
    return InfoMetricFamily(
        families.name("caraway_build"),
        "This build.",
        value={
            "version": metadata.version("caraway"),
            "python": platform.python_version(),
            "datafusion": metadata.version("datafusion"),
            "cores": str(os.cpu_count()),
        },
    )


def _load_states(
    components: Mapping[TableName, DatasetState | ViewState] | Mapping[str, SourceCatalogState],
) -> Mapping[str, int]:
    return {name: _LOAD_STATES[each.status] for name, each in components.items()}


def _active(datasets: Iterable[DatasetState]) -> Mapping[Labels, float]:
    """Count the readable datasets by acceleration engine; `None` counts those without one."""
    found: dict[Labels, float] = {("None",): 0, ("arrow",): 0, ("file",): 0}
    for state in datasets:
        if state.status in ("ready", "refreshing"):
            acceleration = state.dataset.acceleration
            found[acceleration.engine if acceleration else "None",] += 1
    return found


_QUOTAS: Table[Quota[object]] = (
    gauge("quota_entries", "Entries of a shared table.", "table", len),
    gauge("quota_entries_limit", "Maximum entries of a shared table.",
          "table", lambda of: of.limits.most),
    gauge("quota_size_bytes", "Bytes of the entries of a shared table, where they are counted.",
          "table", lambda of: of.size_bytes),
    gauge("quota_holders", "Keys or addresses that have entries of a shared table.",
          "table", lambda of: of.holders),
    gauge("quota_largest_holder_entries", "Entries of the key or address that has most.",
          "table", lambda of: of.most_held),
    counter("quota_evictions", "Entries that made room for others.",
            "table", lambda of: of.evictions),
    counter("quota_refusals", "Entries that were refused.", "table", lambda of: of.refusals),
)  # fmt: skip


def _quota_metrics(quotas: Mapping[str, Quota[object]], families: Families) -> Iterable[Metric]:
    """Yield the metric families. Holders are counted, not named: their number has no limit."""
    return families.of_each(_QUOTAS, dict(sorted(quotas.items())))


_RERANKER_STATES = {"initializing": 0, "ready": 1, "error": 3}
_RERANKERS: Table[RerankerModels] = (
    counter("reranker_requests", "Calls of rerankers by statements.",
            "reranker", lambda of: of.tallies.requests),
    counter("reranker_failures", "Calls of rerankers that failed.",
            "reranker error", lambda of: of.tallies.failures),
    counter("reranker_texts", "Texts that rerankers judged.",
            "reranker", lambda of: of.tallies.texts),
    histogram("reranker_duration_ms", "Duration of calls of rerankers, in milliseconds.",
              "reranker", lambda of: of.tallies.durations),
    gauge("reranker_load_state",
          "State of the rerankers of the manifest: 0 initializing, 1 ready, 3 error.",
          "reranker",
          lambda of: {name: _RERANKER_STATES[each.status] for name, each in of.states.items()}),
)  # fmt: skip


def _reranker_metrics(rerankers: RerankerModels, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    return families.families_of(_RERANKERS, rerankers)


_JOBS: Table[Jobs] = (
    gauge("query_jobs", "Asynchronous queries in the state store, of all schedulers.",
          "status", lambda of: of.replica.counts),
    gauge("scheduler_job_queue_depth", "Jobs in the queue of this scheduler.",
          "", lambda of: of.scheduler.queued),
    gauge("query_jobs_running", "Jobs that run here.", "", lambda of: of.scheduler.running),
    counter("query_jobs_submitted", "Jobs submitted here.", "", lambda of: of.tallies.submitted),
    counter("query_jobs_taken_over", "Jobs taken over from lost schedulers.",
            "", lambda of: of.tallies.taken_over),
    counter("query_jobs_finished", "Jobs that ended here.",
            "status", lambda of: of.tallies.finished),
    counter("query_jobs_stored_bytes", "Stored bytes of answers.",
            "", lambda of: of.tallies.stored_bytes),
    counter("query_jobs_stored_rows", "Stored rows of answers.",
            "", lambda of: of.tallies.stored_rows),
    histogram("query_job_wait_ms", "Time from submission to start of jobs, in milliseconds.",
              "", lambda of: of.tallies.waits),
    histogram("query_job_duration_ms", "Time from start to end of jobs, in milliseconds.",
              "", lambda of: of.tallies.durations),
)  # fmt: skip


def _job_metrics(jobs: Jobs, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    return families.families_of(_JOBS, jobs)


_SEARCHES: Table[SearchService] = (
    counter("search_requests", "Searches that ended.", "", lambda of: of.tallies.requests),
    counter("search_failures", "Searches failed.", "error", lambda of: of.tallies.failures),
    histogram("search_duration_ms", "Duration of searches, in milliseconds.",
              "", lambda of: of.tallies.durations),
)  # fmt: skip
_SEARCH_CACHE: Table[SearchResultsCache] = (
    gauge("search_results_cache_max_size_bytes",
          "Maximum size of the search results cache, in bytes.",
          "", lambda of: of.settings.max_size_bytes),
    gauge("search_results_cache_size_bytes", "Bytes in the search results cache.",
          "", lambda of: of.size_bytes),
    gauge("search_results_cache_items_count", "Answers in the search results cache.", "", len),
    counter("search_results_cache_requests", "Lookups in the search results cache.",
            "", lambda of: of.requests),
    counter("search_results_cache_hits",
            "Lookups in the search results cache that found an answer.",
            "", lambda of: of.hits),
)  # fmt: skip


def _search_metrics(search: SearchService, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    yield from families.families_of(_SEARCHES, search)
    if search.cache is not None:
        yield from families.families_of(_SEARCH_CACHE, search.cache)
