"""Builds the parts of a process from its manifest, bottom-up; nothing here starts anything."""

import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from caraway_acceleration.passthrough.through import SourceDispatch
from caraway_acceleration.service import Accelerations, StoreSharing, VersionStorage
from caraway_ai.local.sent_files import FileSender
from caraway_assist.embeddings.service import Embeddings
from caraway_assist.models.service import Models
from caraway_assist.nsql import NsqlService
from caraway_assist.tools import ToolService, extending
from caraway_assist.tools.meanings import TextEmbedder
from caraway_assist.workers.running import WorkerRuns
from caraway_assist.workers.service import WorkerService
from caraway_assist.workers.times import WorkerTurns
from caraway_core import manifest as manifests
from caraway_core.concurrency.answer_cache import CacheSettings
from caraway_core.ids import TableName
from caraway_core.manifest import Manifest, SecretResolver
from caraway_core.process.data_directory import DataDirectory
from caraway_core.process.folder_size import FolderSize
from caraway_core.statements import SystemTable
from caraway_gateway.composition import searching, security, shared_tables, storage
from caraway_gateway.composition.backend import Backend, usable_cores
from caraway_gateway.composition.storage import SchedulerStorage
from caraway_gateway.iceberg.access import AccessSettings
from caraway_gateway.iceberg.service import IcebergTables
from caraway_gateway.mcp.endpoint import McpEndpoint
from caraway_gateway.metrics import engines as engine_metrics
from caraway_gateway.services import Connection, ManifestInForce, Services
from caraway_scheduler.catalog import missing, primary_keys, runtime_tables
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.catalog.table_definitions import TableDefinitions
from caraway_scheduler.dispatch.searches.later import LaterSearchTables
from caraway_scheduler.dispatch.wrappers.defining import DefiningDispatch
from caraway_scheduler.dispatch.wrappers.describing import DescribingDispatch
from caraway_scheduler.dispatch.wrappers.functions import FunctionDispatch, ManifestFunctions
from caraway_scheduler.dispatch.wrappers.renewing import RenewingDispatch
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory, work_recorder
from caraway_scheduler.history.verdicts import VerdictFile
from caraway_scheduler.jobs.opening import open_jobs
from caraway_scheduler.jobs.owners import JobOwner
from caraway_scheduler.membership import listing
from caraway_scheduler.queries.admission import Admission
from caraway_scheduler.queries.cache import ResultsCache
from caraway_scheduler.queries.recording import StatementRecords
from caraway_scheduler.queries.service import QueryService, StatementLimits
from caraway_serving.tallies import ApiTallies

_QUERIES_PER_CORE = 4


async def services(
    manifest: Manifest,
    secrets: SecretResolver,
    data: DataDirectory,
    tallies: ApiTallies,
    stack: AsyncExitStack,
    backend: Backend,
) -> Services:
    """Build a scheduler over its backend; the stack ends what must be ended.

    Raises:
        CarawayError: the state store or the result store cannot be used.
    """
    settings = manifest.runtime
    searched = LaterSearchTables()
    rerankers = searching.rerankers()
    stack.push_async_callback(rerankers.aclose)
    functions = ManifestFunctions()
    dispatched = searching.dispatch(backend.dispatch, searched, rerankers)
    backend = replace(backend, dispatch=FunctionDispatch(dispatched, functions))
    keyring = security.keyring(manifest, secrets)
    history = _history(settings, data, secrets, stack)
    backend.record_work(work_recorder(history))
    stored = await storage.opened(manifest, secrets, data, stack, backend)
    owner = JobOwner.beginning(backend.scheduler_id or data.node_id)
    cache = _cache(settings)
    embeddings = Embeddings(
        history,
        hosting=backend.hosting,
        caching=settings.caching.embeddings,
        place=stored.place.under("vectors"),
    )
    stack.push_async_callback(embeddings.aclose)
    accelerations = await _accelerations(
        partial(_catalog, settings, data, backend, history, cache, embeddings, functions),
        settings,
        backend,
        stored,
        owner,
        history,
        embeddings,
        functions,
    )
    embeddings.on_ready = accelerations.model_ready
    catalog = accelerations.catalog
    stack.push_async_callback(catalog.aclose)
    stack.push_async_callback(accelerations.aclose)
    # Without a place for all processes, the chunks would be on this machine.
    is_reached = settings.scheduler.state_location is not None
    sender = FileSender(stored.place.under("models"), data.cache / "sent") if is_reached else None
    kept_responses = shared_tables.of_responses(settings.quotas)
    models = Models(
        data.cache / "models", history, stored.state, backend.hosting, sender, kept_responses
    )
    stack.push_async_callback(models.aclose)
    rerankers.ask = searching.asked(models)
    backend.report_failures(catalog.failed_later)
    described = DescribingDispatch(backend.dispatch, catalog.source_catalogs)
    defining = DefiningDispatch(described, TableDefinitions(catalog.source_catalogs))
    renewing = RenewingDispatch(defining, catalog)
    dispatch = SourceDispatch(renewing, accelerations, partial(missing.explained, catalog))
    queries = _queries(settings, dispatch, catalog, cache, history, tallies)
    jobs = await open_jobs(
        stored.state,
        owner,
        stored.place.under("jobs"),
        settings.jobs,
        dispatch,
        queries.catalog,
        history,
        queries.invalidate,
        most_sql_bytes=settings.query.max_sql_size_bytes,
        quotas=settings.quotas,
    )
    search = searching.service(
        settings.caching, dispatch, catalog, queries, embeddings, history, searched
    )
    tools = ToolService(queries, catalog, history, search, meanings=TextEmbedder(embeddings))
    tools.data.more_components = lambda: {
        "models": {name: state.status for name, state in models.states.items()},
        "tools": tools.statuses,
    }
    stack.push_async_callback(tools.aclose)
    models.tools_of = extending.tools_of(tools)
    workers = WorkerService(
        WorkerRuns(models, queries, history), WorkerTurns(stored.state, str(owner))
    )
    stack.push_async_callback(workers.aclose)
    published = partial(storage.published, settings, secrets, data.path / "iceberg")
    iceberg = settings.iceberg
    tables = IcebergTables(
        catalog,
        dispatch,
        published,
        accelerations.shown,
        iceberg.snapshot_retention_s,
        AccessSettings(iceberg.access_delegation, iceberg.sts_role_arn or "", iceberg.sts_endpoint),
    )
    stack.push_async_callback(tables.aclose)
    mcp = McpEndpoint(
        tools.toolbox,
        settings.mcp.allowed_hosts,
        settings.cors.allowed_origins,
        settings.quotas.max_mcp_sessions,
    )
    stack.push_async_callback(mcp.aclose)
    return Services(
        manifest=ManifestInForce(manifest),
        catalog=catalog,
        queries=queries,
        jobs=jobs,
        accelerations=accelerations,
        dispatch=dispatch,
        functions=functions,
        dispatch_tallies=backend.tallies,
        engines=backend.engines,
        data_size=FolderSize(data.path),
        scheduler_count=backend.scheduler_count,
        is_scheduler=backend.is_scheduler,
        history=history,
        tallies=tallies,
        models=models,
        search=search,
        rerankers=rerankers,
        tools=tools,
        mcp=mcp,
        embeddings=embeddings,
        nsql=NsqlService(models, tools, queries, history, functions),
        workers=workers,
        tables=tables,
        verdicts=VerdictFile(data.path / "verdicts.jsonl"),
        keyring=keyring,
        max_body_bytes=settings.http.max_body_size_bytes,
        max_message_bytes=settings.flight.max_message_size_bytes,
        body_memory_bytes=settings.http.body_memory_bytes,
        operating=backend.operating,
        quotas=shared_tables.quotas(mcp, cache, search, history, models, jobs, queries),
        connections=(
            Connection("http", status="Initializing"),
            Connection("flight", status="Initializing"),
            Connection("metrics", status="Initializing"),
            Connection("opentelemetry"),
        ),
    )


def _cache(settings: manifests.RuntimeSettings) -> ResultsCache | None:
    caching = settings.caching.sql_results
    if not caching.enabled:
        return None
    cache_settings = CacheSettings(max_size_bytes=caching.max_size_bytes, ttl_s=caching.item_ttl_s)
    return ResultsCache(cache_settings)


def _catalog(
    settings: manifests.RuntimeSettings,
    data: DataDirectory,
    backend: Backend,
    history: TaskHistory,
    cache: ResultsCache | None,
    embeddings: Embeddings,
    functions: ManifestFunctions,
    accelerations: Accelerations,
) -> Catalog:
    system: Mapping[TableName, SystemTable] = {
        TableName("task_history"): history.table,
        TableName("engines"): lambda _viewer: engine_metrics.table(backend.engines()),
        TableName("functions"): lambda _viewer: runtime_tables.functions_table(functions.declared),
        TableName("executors"): lambda _viewer: listing.table(backend.dispatch.executors()),
        TableName("partitions"): lambda _viewer: accelerations.partitions(),
        TableName("primary_keys"): lambda _viewer: primary_keys.table(
            accelerations.catalog.datasets
        ),
        TableName("catalog_tables"): lambda _viewer: runtime_tables.catalog_tables(
            accelerations.catalog.source_catalogs.states
        ),
        TableName("descriptions"): lambda _viewer: runtime_tables.descriptions_table(
            accelerations.catalog.datasets, accelerations.catalog.views
        ),
    }
    return Catalog(
        backend.dispatch,
        data.cache,
        system,
        settings.dataset_load_parallelism or max(4, usable_cores(settings)),
        accelerations,
        cache.clear if cache is not None else lambda: None,
        embeddings,
    )


async def _accelerations(
    make_catalog: Callable[[Accelerations], Catalog],
    settings: manifests.RuntimeSettings,
    backend: Backend,
    stored: SchedulerStorage,
    owner: JobOwner,
    history: TaskHistory,
    embeddings: Embeddings,
    functions: ManifestFunctions,
) -> Accelerations:
    place = stored.place.under("datasets")
    return Accelerations(
        make_catalog,
        backend.dispatch,
        VersionStorage(stored.state, await storage.results(place), place, stored.snapshots),
        StoreSharing(
            str(owner),
            is_shared=backend.is_shared,
            # Alone, a scheduler has itself acknowledged every change.
            asks_newest=backend.is_shared and settings.query.consistency == "strong",
        ),
        history,
        embeddings,
        functions,
    )


def _queries(
    settings: manifests.RuntimeSettings,
    dispatch: SourceDispatch,
    catalog: Catalog,
    cache: ResultsCache | None,
    history: TaskHistory,
    tallies: ApiTallies,
) -> QueryService:
    query = settings.query
    running = query.max_concurrent_queries
    if running is None:
        running = _QUERIES_PER_CORE * usable_cores(settings)
    return QueryService(
        dispatch,
        lambda: (catalog.state, catalog.writable),
        Admission(running or None, query.max_queued_queries, query.queue_timeout_s),
        cache,
        StatementRecords(history, tallies),
        StatementLimits(query.timeout_s or None, query.max_sql_size_bytes),
        dispatch,
    )


def _history(
    settings: manifests.RuntimeSettings,
    data: DataDirectory,
    secrets: SecretResolver,
    stack: AsyncExitStack,
) -> TaskHistory:
    """Return the history that the manifest asks for; the stack ends the export of traces."""
    task_history_settings = settings.task_history
    history = TaskHistory(
        HistorySettings(
            enabled=task_history_settings.enabled,
            retention_s=task_history_settings.retention_period_s,
            captures_output=task_history_settings.captured_output != "none",
            min_sql_duration_s=task_history_settings.min_sql_duration_s,
        ),
        data.node_id,
        time.time_ns,
    )
    exporter = settings.telemetry.otel_exporter
    if exporter is not None and exporter.enabled and exporter.endpoint:
        # Imported here: it costs a fifth of a second that most starts need not pay.
        from caraway_scheduler.history.exporting import TraceExporter

        tracing = TraceExporter(
            secrets.expand(exporter.endpoint),
            secrets.expand_all(exporter.headers),
            data.node_id,
            settings.telemetry.properties,
        )
        stack.callback(tracing.close)
        history.subscribe(tracing.listener)
    return history
