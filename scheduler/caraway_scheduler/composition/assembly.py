"""From the settings of a manifest to the parts of a process: nothing here starts anything."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa

from caraway_core import cores, registry
from caraway_core import manifest as manifests
from caraway_core.data_directory import DataDirectory
from caraway_core.errors import ManifestError, Problem
from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.manifest import Manifest, SecretResolver, memory
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.engines import EngineReport
from caraway_core.protocols.results import ResultStore
from caraway_core.protocols.state import StateStore
from caraway_core.tables import ResultPlace
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.stages import Policy
from caraway_scheduler.acceleration.passthrough.through import SourceDispatch
from caraway_scheduler.acceleration.service import Accelerations, SnapshotPlace
from caraway_scheduler.acceleration.versions import partition_listing
from caraway_scheduler.catalog import missing
from caraway_scheduler.catalog.catalog import Catalog
from caraway_scheduler.composition import state
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from caraway_scheduler.dispatch.running import Ran
from caraway_scheduler.dispatch.tallies import DispatchTallies
from caraway_scheduler.history.executors import recorder
from caraway_scheduler.history.tasks import HistorySettings, TaskHistory
from caraway_scheduler.jobs import places
from caraway_scheduler.jobs.opening import Jobs, open_jobs
from caraway_scheduler.membership import listing
from caraway_scheduler.metrics import engines as engine_metrics
from caraway_scheduler.queries.admission import Admission
from caraway_scheduler.queries.cache import CacheSettings, ResultsCache
from caraway_scheduler.queries.service import QueryService
from caraway_scheduler.services import Connection, Operating, Services
from caraway_serving.access import Keyring
from caraway_serving.tallies import ApiTallies
from caraway_serving.tls import Certificate

logger = logging.getLogger(__name__)
_QUERIES_PER_CORE = 4
_MEMORY_SHARE = "70%"
FailedLater = Callable[[CatalogVersion, Mapping[TableName, str]], None]


@dataclass(frozen=True, slots=True)
class Backend:
    """What runs the queries, and what must run beside it as long as it serves."""

    dispatch: Dispatch
    is_scheduler: bool = False
    keepers: Sequence[Callable[[], Coroutine[None, None, None]]] = ()
    tallies: DispatchTallies = field(default_factory=DispatchTallies)
    scheduler_count: Callable[[], int] = lambda: 1
    record_work: Callable[[Callable[[Ran], None]], None] = lambda _record: None
    """Takes what is to be told of each piece of work on an executor."""
    report_failures: Callable[[FailedLater], None] = lambda _report: None
    """Takes what is to be told of tables that fail on an executor that joins later."""
    scheduler_id: str = ""
    state: StateStore | None = None
    """The store of a cluster's schedulers; alone, a process has a file of its own."""
    is_shared: bool = False
    """Whether there may be other schedulers."""
    operating: Operating | None = None
    engines: Callable[[], EngineReport] = EngineReport
    """Tells of the engine processes."""


def standalone(
    manifest: Manifest, data: DataDirectory, stack: AsyncExitStack, engines: object = None
) -> Backend:
    """One executor, whose engine runs in processes of its own, started by `engines` if given."""
    executor_class = registry.load("executor", registry.EXECUTORS, "engine-process")
    wanted = engine(manifest, data)
    executor = executor_class(wanted, engines)
    dispatch = InProcessDispatch(
        executor,
        ExecutorId(data.node_id),
        _cores(manifest.runtime),
        wanted.memory_limit_bytes or 0,
    )
    stack.push_async_callback(dispatch.aclose)
    return Backend(dispatch, engines=executor.report)


def services(
    manifest: Manifest,
    secrets: SecretResolver,
    data: DataDirectory,
    tallies: ApiTallies,
    stack: AsyncExitStack,
    backend: Backend | None = None,
) -> Services:
    """Put a scheduler together, standalone without a backend; the stack ends what needs ending."""
    settings = manifest.runtime
    history = _history(settings, data, secrets, stack)
    backend = backend or standalone(manifest, data, stack)
    backend.record_work(recorder(history))
    dispatch = SourceDispatch(backend.dispatch)
    catalog = Catalog(
        dispatch,
        data.cache,
        {
            TableName("task_history"): history.table,
            TableName("engines"): lambda _viewer: engine_metrics.table(backend.engines()),
            TableName("executors"): lambda _viewer: listing.table(dispatch.executors()),
            TableName("partitions"): lambda _viewer: partitions(),
        },
        settings.dataset_load_parallelism or max(4, _cores(settings)),
    )
    stack.push_async_callback(catalog.aclose)
    backend.report_failures(catalog.failed_later)
    dispatch.explain_missing = partial(missing.explained, catalog)

    def partitions() -> pa.Table:
        known = made.accelerations
        return partition_listing.SCHEMA.empty_table() if known is None else known.partitions()

    queries = _queries(settings, dispatch, catalog, history, tallies)
    catalog.on_change = queries.invalidate
    made = Services(
        manifest=lambda: manifest,
        catalog=catalog,
        queries=queries,
        dispatch=dispatch,
        through=dispatch,
        dispatch_tallies=backend.tallies,
        engines=backend.engines,
        scheduler_count=backend.scheduler_count,
        is_scheduler=backend.is_scheduler,
        history=history,
        tallies=tallies,
        keyring=_keyring(settings, secrets, manifest),
        max_body_bytes=settings.http.max_body_size_bytes,
        max_message_bytes=settings.flight.max_message_size_bytes,
        body_memory_bytes=settings.http.body_memory_bytes,
        operating=backend.operating,
        connections=(
            Connection("http", status="Initializing"),
            Connection("flight", status="Initializing"),
            Connection("metrics", status="Initializing"),
            Connection("opentelemetry"),
        ),
    )
    return made


async def jobs(
    manifest: Manifest,
    secrets: SecretResolver,
    data: DataDirectory,
    services: Services,
    stack: AsyncExitStack,
    backend: Backend | None = None,
) -> Jobs:
    """Open what asynchronous queries and accelerated datasets need, and hand them to the API.

    Raises:
        CarawayError: the state store or the result store cannot be used.
    """
    settings, queries = manifest.runtime, services.queries
    if backend and backend.is_shared and settings.scheduler.state_location is None:
        logger.warning(
            "answers of asynchronous queries stay with the scheduler that ran them; set "
            "runtime.scheduler.state_location to a place that all schedulers and executors reach"
        )
    store = backend.state if backend else None
    store = store or await state.opened(None, data.path / state.STATE_FILE, stack)
    scheduler_id = (backend.scheduler_id if backend else "") or data.node_id
    operating = backend.operating if backend else None
    token = operating.token if operating else ""
    place = places.place(settings, secrets, data.path / "results", token)
    if settings.scheduler.state_location is not None:
        # What no job and no version stands for is removed, so that runtimes which know nothing of
        # each other's must not look into one folder.
        place = place.under(await state.identity(store))
    opened = await open_jobs(
        store,
        scheduler_id,
        place.under("jobs"),
        settings.jobs,
        services.dispatch,
        queries.catalog,
        services.history,
        queries.invalidate,
        most_sql_bytes=settings.query.max_sql_size_bytes,
    )
    services.jobs, services.job_works = opened.desk, opened
    snapshots = await _snapshots(manifest, secrets, token)
    accelerations = await _accelerations(
        services,
        store,
        opened.foreman.owner,
        place.under("datasets"),
        snapshots,
        # Alone, a scheduler has itself acknowledged whatever was.
        is_shared=bool(backend and backend.is_shared),
        asks_newest=bool(backend and backend.is_shared) and settings.query.consistency == "strong",
    )
    stack.push_async_callback(accelerations.aclose)
    services.catalog.accelerator = services.accelerations = accelerations
    services.ingest = accelerations
    if services.through is not None:
        services.through.attach(accelerations)
    return opened


async def _snapshots(
    manifest: Manifest, secrets: SecretResolver, token: str
) -> SnapshotPlace | None:
    wanted = manifest.snapshots
    if wanted is None:
        return None
    place = places.named("snapshots.location", wanted.location, wanted.params, secrets, token)
    return SnapshotPlace(place, await _results(place), wanted.on_failure)


async def _results(place: ResultPlace) -> ResultStore:
    store_class = registry.load("result store", registry.RESULT_STORES, place.kind)
    results: ResultStore = await asyncio.to_thread(store_class.at, place)
    return results


async def _accelerations(
    services: Services,
    store: StateStore,
    owner: str,
    place: ResultPlace,
    snapshots: SnapshotPlace | None,
    *,
    is_shared: bool,
    asks_newest: bool,
) -> Accelerations:
    results = await _results(place)
    return Accelerations(
        services.catalog,
        services.through.inner if services.through else services.dispatch,
        store,
        results,
        place,
        owner,
        services.history.add,
        snapshots,
        is_shared=is_shared,
        asks_newest=asks_newest,
    )


def certificate(
    settings: manifests.RuntimeSettings, secrets: SecretResolver, folder: Path
) -> Certificate | None:
    """Load the certificate that the manifest names, if it names one.

    PEM texts are written to `folder`, since the TLS library reads files only.
    """
    tls = settings.tls
    if tls is None:
        return None
    return Certificate(
        tls.certificate_file
        or _pem_file(folder / "tls.crt", secrets.expand(tls.certificate or "")),
        tls.key_file or _pem_file(folder / "tls.key", secrets.expand(tls.key or "")),
        tls.client_auth_mode,
        tls.client_auth_ca_file,
    )


def _pem_file(path: Path, text: str) -> Path:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    return path


def cors_origins(settings: manifests.RuntimeSettings) -> list[str] | None:
    return list(settings.cors.allowed_origins) if settings.cors.enabled else None


def _cores(settings: manifests.RuntimeSettings) -> int:
    return settings.cpu_cores or cores.available()


def engine(manifest: Manifest, data: DataDirectory) -> EngineSettings:
    """Bounds of the engine in this process."""
    settings, spill = manifest.runtime, data.spill
    query = settings.query
    return EngineSettings(
        target_partitions=query.target_partitions or _cores(settings),
        memory_limit_bytes=query.memory_limit_bytes or memory.limit_bytes(_MEMORY_SHARE),
        temp_directory=query.temp_directory or spill,
        spill_compression=query.spill_compression,
        chunks_directory=data.chunks,
    )


def policy(settings: manifests.RuntimeSettings) -> Policy:
    """What the manifest says of how queries are shared out in a cluster."""
    wanted = settings.query.distribution
    return Policy(
        wanted.small_table_bytes,
        wanted.broadcast_bytes,
        wanted.gather_bytes,
        wanted.partition_bytes,
    )


def _history(
    settings: manifests.RuntimeSettings,
    data: DataDirectory,
    secrets: SecretResolver,
    stack: AsyncExitStack,
) -> TaskHistory:
    wanted = settings.task_history
    history = TaskHistory(
        HistorySettings(
            enabled=wanted.enabled,
            retention_s=wanted.retention_period_s,
            captures_output=wanted.captured_output != "none",
            min_sql_duration_s=wanted.min_sql_duration_s,
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


def _queries(
    settings: manifests.RuntimeSettings,
    dispatch: SourceDispatch,
    catalog: Catalog,
    history: TaskHistory,
    tallies: ApiTallies,
) -> QueryService:
    query, caching = settings.query, settings.caching.sql_results
    running = query.max_concurrent_queries
    if running is None:
        running = _QUERIES_PER_CORE * _cores(settings)
    cache = None
    if caching.enabled:
        wanted = CacheSettings(max_size_bytes=caching.max_size_bytes, ttl_s=caching.item_ttl_s)
        cache = ResultsCache(wanted, time.monotonic)
    return QueryService(
        dispatch,
        lambda: (catalog.state, catalog.writable),
        Admission(running or None, query.max_queued_queries, query.queue_timeout_s),
        cache,
        history,
        tallies,
        query.timeout_s or None,
        dispatch,
        query.max_sql_size_bytes,
    )


def _keyring(
    settings: manifests.RuntimeSettings, secrets: SecretResolver, manifest: Manifest
) -> Keyring | None:
    """Fill in the keys.

    Raises:
        ManifestError: keys are asked for and every one of them is empty.
    """
    if not settings.auth.enabled:
        return None
    keys = [manifests.split_key(secrets.expand(key)) for key in settings.auth.keys]
    if not any(key for key, _ in keys):
        raise ManifestError(
            [
                Problem(
                    str(manifest.path), 0, "runtime.auth.api-key.keys",
                    "every key is empty; set the secrets that they refer to",
                )
            ]
        )  # fmt: skip
    return Keyring(keys)
