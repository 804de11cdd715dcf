"""The runtime settings of a manifest as plain values, with all defaults applied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from caraway_core.manifest.texts.git_urls import DEFAULT_GIT_URL

MIB = 1024 * 1024
ReadyState = Literal["on_load", "on_registration"]
Consistency = Literal["strong", "eventual"]
EvictionPolicy = Literal["lru", "tiny_lfu"]


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """API keys as written in the manifest, with secret references and access suffixes."""

    enabled: bool = False
    keys: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """A certificate and its key, each as a file or as PEM text that may be a secret reference.

    With `client_auth_mode` clients are asked for certificates too, signed by an authority of
    `client_auth_ca_file`.
    """

    certificate_file: Path | None = None
    certificate: str | None = None
    key_file: Path | None = None
    key: str | None = field(default=None, repr=False)
    client_auth_mode: Literal["none", "request", "required"] = "none"
    client_auth_ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The page that the port of the API serves, unless it is off."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class CorsSettings:
    """The origins of web pages that may call the API from a browser."""

    enabled: bool = False
    allowed_origins: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class TaskHistorySettings:
    """The content of `runtime.task_history`, and its retention."""

    enabled: bool = True
    captured_output: Literal["none", "truncated"] = "none"
    captured_plan: Literal["none", "explain", "explain analyze"] = "none"
    min_sql_duration_s: float = 0.0
    min_plan_duration_s: float = 0.0
    retention_period_s: float = 8 * 3600.0
    retention_check_interval_s: float = 900.0


@dataclass(frozen=True, slots=True)
class SqlResultsCacheSettings:
    """The cache of SQL results; a stale time above 0 serves expired results for that long."""

    enabled: bool = True
    max_size_bytes: int = 128 * MIB
    item_ttl_s: float = 1.0
    eviction_policy: EvictionPolicy = "lru"
    hashing_algorithm: str = "xxh3"
    cache_key_type: Literal["plan", "sql"] = "plan"
    encoding: Literal["none", "zstd"] = "none"
    stale_while_revalidate_ttl_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchResultsCacheSettings:
    """The cache of the results of searches."""

    enabled: bool = True
    max_size_bytes: int = 128 * MIB
    item_ttl_s: float = 1.0


@dataclass(frozen=True, slots=True)
class EmbeddingsCacheSettings:
    """The cache of vectors in the process of a scheduler; None keeps them until room is needed.

    Only a manifest with this section has answers of `POST /v1/embeddings` kept, too.
    """

    enabled: bool = True
    max_size_bytes: int = 64 * MIB
    item_ttl_s: float | None = None
    max_stored_size_bytes: int = 4096 * MIB
    """Of the vectors of datasets in the result store; 0 stores none."""


@dataclass(frozen=True, slots=True)
class CachingSettings:
    """The caches of this build."""

    sql_results: SqlResultsCacheSettings = SqlResultsCacheSettings()
    search_results: SearchResultsCacheSettings = SearchResultsCacheSettings()
    embeddings: EmbeddingsCacheSettings | None = None


@dataclass(frozen=True, slots=True)
class DistributionSettings:
    """Thresholds from which a cluster distributes a query, and how it does."""

    small_table_bytes: int = 16 * MIB
    broadcast_bytes: int = 16 * MIB
    gather_bytes: int = 16 * MIB
    partition_bytes: int = 128 * MIB


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """Limits of queries; None leaves the choice to the engine, and means no limit for `timeout_s`.

    `max_concurrent_queries` 0 is unlimited. A statement is refused if more than
    `max_queued_queries` wait, or after it waited for `queue_timeout_s`.
    """

    memory_limit_bytes: int | None = None
    max_concurrent_queries: int | None = None
    max_queued_queries: int = 1000
    queue_timeout_s: float = 60.0
    timeout_s: float | None = 600.0
    planning_timeout_s: float | None = 10.0
    max_sql_size_bytes: int = 4 * MIB
    target_partitions: int | None = None
    spill_compression: Literal["zstd", "lz4_frame", "uncompressed"] = "zstd"
    temp_directory: Path | None = None
    consistency: Consistency = "strong"
    """With `eventual`, a read may miss writes that other schedulers acknowledged milliseconds ago.
    """
    distribution: DistributionSettings = DistributionSettings()


@dataclass(frozen=True, slots=True)
class ParallelReadSettings:
    """Reads of distributed answers at the executors by clients, and how long tickets last."""

    enabled: bool = True
    ticket_ttl_s: float = 60.0


@dataclass(frozen=True, slots=True)
class FlightSettings:
    """The Arrow Flight server."""

    max_message_size_bytes: int = 16 * MIB
    do_put_rate_limit_enabled: bool = True
    parallel_reads: ParallelReadSettings | None = None


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP server; a body above the limit is refused with 413."""

    max_body_size_bytes: int = 128 * MIB
    max_body_memory_bytes: int = 256 * MIB
    """The memory for all request bodies; further requests wait, and then get 503."""
    max_connections: int = 4096

    @property
    def body_memory_bytes(self) -> int:
        """The limit on all bodies, which is at least the size of one body."""
        return max(self.max_body_memory_bytes, self.max_body_size_bytes)


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The MCP endpoint, which answers only these host names; `*` means any.

    Without any, these are the names of this machine itself.
    """

    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotaSettings:
    """What one key may keep of tables that all keys share, and one address of the connections.

    None leaves the choice to the runtime: half of all connections, and no limit for the results of
    jobs.
    """

    max_connections: int | None = None
    max_mcp_sessions: int = 1_000
    max_flight_sessions: int = 1_000
    max_prepared_statements: int = 1_000
    max_responses: int = 1_000
    max_responses_size_bytes: int = 64 * MIB
    max_jobs: int = 10_000
    max_job_results_size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class OtelExporter:
    """The endpoint for metrics and traces; `headers` may hold secret references."""

    enabled: bool = True
    endpoint: str | None = None
    push_interval_s: float = 60.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Metrics, traces and logs of the process."""

    enabled: bool = True
    metric_prefix: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    otel_exporter: OtelExporter | None = None


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """The location of job results: the absolute path of a folder, or the URL of a bucket.

    `params` may hold secret references. None leaves the choice to the scheduler.
    """

    state_location: str | None = None
    params: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class IcebergSettings:
    """The location of what the table catalog writes for other engines: the absolute path of a
    folder, or the URL of a bucket; None: a folder in the data directory.

    `snapshot_retention_s` is how long clients see exports that were replaced. `access_delegation`
    are the ways in which clients reach files in S3 without credentials of their own.
    """

    location: str | None = None
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    snapshot_retention_s: float = 3600.0
    access_delegation: tuple[str, ...] = ()
    sts_role_arn: str | None = None
    sts_endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class PackageSettings:
    """The host of git repositories, below whose URL packages are."""

    git_url: str = DEFAULT_GIT_URL


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Limits of asynchronous queries; None leaves the choice to the scheduler.

    More than `max_queued` waiting jobs are refused, and answers are kept for `retention_s`.
    """

    max_concurrent: int | None = None
    max_queued: int = 10_000
    retention_s: float = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """All settings under `runtime`; `tls` is None if the servers use plain text."""

    auth: AuthSettings = AuthSettings()
    tls: TlsSettings | None = None
    cors: CorsSettings = CorsSettings()
    console: ConsoleSettings = ConsoleSettings()
    task_history: TaskHistorySettings = TaskHistorySettings()
    caching: CachingSettings = CachingSettings()
    query: QuerySettings = QuerySettings()
    cpu_cores: int | None = None
    dataset_load_parallelism: int | None = None
    shutdown_timeout_s: float = 30.0
    ready_state: ReadyState = "on_load"
    output_level: Literal["info", "verbose", "very_verbose"] | None = None
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    flight: FlightSettings = FlightSettings()
    http: HttpSettings = HttpSettings()
    mcp: McpSettings = McpSettings()
    quotas: QuotaSettings = QuotaSettings()
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    jobs: JobSettings = JobSettings()
    iceberg: IcebergSettings = field(default_factory=IcebergSettings)
    packages: PackageSettings = PackageSettings()

    @property
    def connections_of_address(self) -> int:
        """The limit on connections of one address."""
        return self.quotas.max_connections or max(1, self.http.max_connections // 2)
