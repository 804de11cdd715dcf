"""The section `runtime` of a manifest: servers, limits, caches and telemetry."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from caraway_core.manifest.sections import (
    After,
    Anything,
    Before,
    BodySize,
    Count,
    CountOrNone,
    Duration,
    FilePath,
    Items,
    Limits,
    MemorySize,
    Place,
    PositiveDuration,
    Section,
    Size,
    Text,
    TextList,
    Texts,
    Written,
    key,
    unwritten,
)
from caraway_core.manifest.texts.git_urls import DEFAULT_GIT_URL, checked_git_url
from caraway_core.manifest.values.caching import MIB, CachingSettings, OldResultsCache

ReadyState = Literal["on_load", "on_registration"]
Consistency = Literal["strong", "eventual"]


def checked_endpoint(text: str) -> str:
    """Check the URL of a service.

    Raises:
        ValueError: it is none.
    """
    parts = urlsplit(text)
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise ValueError("write a URL such as https://sts.eu-west-1.amazonaws.com")
    return text


@dataclass(frozen=True, slots=True)
class ApiKeySection(Section):
    """The keys of one of the two spellings of `api_key`."""

    enabled: bool = True
    keys: Items[Written] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class OidcClaims(Section):
    """The claims of tokens, which have no effect."""

    user_id: Text | None = None
    org_id: Text | None = None
    roles: Text | None = None


@dataclass(frozen=True, slots=True)
class Oidc(Section):
    """Tokens of an identity provider, which have no effect."""

    enabled: bool = True
    issuer_url: Text | None = None
    audience: TextList = ()
    groups_claims: TextList = ()
    claims: OidcClaims | None = None


@dataclass(frozen=True, slots=True)
class AuthSettings(Section):
    """API keys as written in the manifest, with secret references and access suffixes."""

    KEYS: ClassVar[Mapping[str, object]] = {
        "api-key": ApiKeySection | None,
        "api_key": ApiKeySection | None,
        "oidc": Oidc | None,
    }

    enabled: bool = unwritten(default=False)
    keys: tuple[str, ...] = unwritten(default=(), repr=False)

    @classmethod
    def from_keys(cls, keys: dict[str, Any], folder: Path) -> "AuthSettings":
        """Return the keys of the spelling that is used, without empty ones."""
        section = keys.get("api_key") or keys.get("api-key")
        if section is None or not section.enabled:
            return cls()
        return cls(enabled=True, keys=tuple(filter(None, section.keys)))


@dataclass(frozen=True, slots=True)
class TlsSettings(Section):
    """A certificate and its key, each as a file or as PEM text that may be a secret reference.

    With `client_auth_mode` clients are asked for certificates too, signed by an authority of
    `client_auth_ca_file`.
    """

    enabled: bool = True
    certificate_file: FilePath | None = None
    certificate: Text | None = None
    key_file: FilePath | None = None
    key: Text | None = field(default=None, repr=False)
    client_auth_mode: Literal["none", "request", "required"] = "none"
    client_auth_ca_file: FilePath | None = None


@dataclass(frozen=True, slots=True)
class ConsoleSettings(Section):
    """The page that the port of the API serves, unless it is off."""

    enabled: bool = True


@dataclass(frozen=True, slots=True)
class CorsSettings(Section):
    """The origins of web pages that may call the API from a browser."""

    enabled: bool = False
    allowed_origins: TextList = ("*",)


@dataclass(frozen=True, slots=True)
class TaskHistorySettings(Section):
    """The content of `runtime.task_history`, and its retention."""

    enabled: bool = True
    captured_output: Literal["none", "truncated"] = "none"
    captured_plan: Literal["none", "explain", "explain analyze"] = "none"
    min_sql_duration_s: Duration = key("min_sql_duration", default=0.0)
    min_plan_duration_s: Duration = key("min_plan_duration", default=0.0)
    retention_period_s: PositiveDuration = key("retention_period", default=8 * 3600.0)
    retention_check_interval_s: PositiveDuration = key("retention_check_interval", default=900.0)


@dataclass(frozen=True, slots=True)
class DistributionSettings(Section):
    """Thresholds from which a cluster distributes a query, and how it does."""

    small_table_bytes: Size = key("small_table_size", default=16 * MIB)
    broadcast_bytes: Size = key("broadcast_size", default=16 * MIB)
    gather_bytes: Size = key("gather_size", default=16 * MIB)
    partition_bytes: Annotated[Size, Limits(ge=MIB)] = key("partition_size", default=128 * MIB)


def _or_none(seconds: float) -> float | None:
    """A limit of no time at all would refuse everything; people write 0 for "no limit"."""
    return seconds or None


@dataclass(frozen=True, slots=True)
class QuerySettings(Section):
    """Limits of queries; None leaves the choice to the engine, and means no limit for `timeout_s`.

    `max_concurrent_queries` 0 is unlimited. A statement is refused if more than
    `max_queued_queries` wait, or after it waited for `queue_timeout_s`.
    """

    memory_limit_bytes: MemorySize | None = key("memory_limit", default=None)
    max_concurrent_queries: CountOrNone | None = None
    max_queued_queries: CountOrNone = 1000
    queue_timeout_s: Duration = key("queue_timeout", default=60.0)
    timeout_s: Annotated[Duration, After(_or_none)] | None = key("timeout", default=600.0)
    planning_timeout_s: Annotated[float | None, After(_or_none, Duration)] = key(
        "planning_timeout", default=10.0
    )
    max_sql_size_bytes: BodySize = key("max_sql_size", default=4 * MIB)
    target_partitions: Count | None = None
    spill_compression: Literal["zstd", "lz4_frame", "uncompressed"] = "zstd"
    temp_directory: FilePath | None = None
    consistency: Consistency = "strong"
    """With `eventual`, a read may miss writes that other schedulers acknowledged milliseconds ago.
    """
    distribution: DistributionSettings = DistributionSettings()


@dataclass(frozen=True, slots=True)
class ParallelReadSettings(Section):
    """Reads of distributed answers at the executors by clients, and how long tickets last."""

    enabled: bool = True
    ticket_ttl_s: Annotated[PositiveDuration, Limits(le=3600.0)] = key("ticket_ttl", default=60.0)


@dataclass(frozen=True, slots=True)
class FlightSettings(Section):
    """The Arrow Flight server."""

    max_message_size_bytes: Annotated[BodySize, Limits(lt=2**31)] = key(
        "max_message_size", default=16 * MIB
    )
    do_put_rate_limit_enabled: bool = True
    parallel_reads: ParallelReadSettings | None = None


@dataclass(frozen=True, slots=True)
class HttpSettings(Section):
    """The HTTP server; a body above the limit is refused with 413."""

    max_body_size_bytes: BodySize = key("max_body_size", default=128 * MIB)
    max_body_memory_bytes: BodySize = key("max_body_memory", default=256 * MIB)
    """The memory for all request bodies; further requests wait, and then get 503."""
    max_connections: Count = 4096

    @property
    def body_memory_bytes(self) -> int:
        """The limit on all bodies, which is at least the size of one body."""
        return max(self.max_body_memory_bytes, self.max_body_size_bytes)


@dataclass(frozen=True, slots=True)
class McpSettings(Section):
    """The MCP endpoint, which answers only these host names; `*` means any.

    Without any, these are the names of this machine itself.
    """

    allowed_hosts: TextList = ()


@dataclass(frozen=True, slots=True)
class QuotaSettings(Section):
    """What one key may keep of tables that all keys share, and one address of the connections.

    None leaves the choice to the runtime: half of all connections, and no limit for the results of
    jobs.
    """

    max_connections: Count | None = None
    max_mcp_sessions: Count = 1_000
    max_flight_sessions: Count = 1_000
    max_prepared_statements: Count = 1_000
    max_responses: Count = 1_000
    max_responses_size_bytes: BodySize = key("max_responses_size", default=64 * MIB)
    max_jobs: Count = 10_000
    max_job_results_size_bytes: BodySize | None = key("max_job_results_size", default=None)


@dataclass(frozen=True, slots=True)
class OtelExporter(Section):
    """The endpoint for metrics and traces; `headers` may hold secret references."""

    enabled: bool = True
    endpoint: Text | None = None
    push_interval_s: PositiveDuration = key("push_interval", default=60.0)
    headers: Texts = field(default_factory=dict, repr=False)
    metrics: TextList = ()


@dataclass(frozen=True, slots=True)
class TelemetrySettings(Section):
    """Metrics, traces and logs of the process."""

    enabled: bool = True
    metric_prefix: Annotated[str, Limits(pattern=r"^[A-Za-z0-9_:]*$")] = ""
    properties: Texts = field(default_factory=dict)
    otel_exporter: OtelExporter | None = None


@dataclass(frozen=True, slots=True)
class SchedulerSettings(Section):
    """The location of job results: the absolute path of a folder, or the URL of a bucket.

    `params` may hold secret references. None leaves the choice to the scheduler.
    """

    KEYS: ClassVar[Mapping[str, object]] = {
        "partition_assignment_interval": PositiveDuration,
        "max_partition_assignments_per_interval": Count,
        "max_partitions_per_executor": Count,
        "partition_discovery_timeout": PositiveDuration,
    }

    state_location: Place | None = None
    params: Texts = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class IcebergSettings(Section):
    """The location of what the table catalog writes for other engines: the absolute path of a
    folder, or the URL of a bucket; None: a folder in the data directory.

    `snapshot_retention_s` is how long clients see exports that were replaced. `access_delegation`
    are the ways in which clients reach files in S3 without credentials of their own.
    """

    location: Place | None = None
    params: Texts = field(default_factory=dict, repr=False)
    snapshot_retention_s: PositiveDuration = key("snapshot_retention", default=3600.0)
    access_delegation: Items[Literal["remote-signing", "vended-credentials"]] = ()
    sts_role_arn: Text | None = None
    sts_endpoint: Annotated[Text, After(checked_endpoint)] | None = None


@dataclass(frozen=True, slots=True)
class PackageSettings(Section):
    """The host of git repositories, below whose URL packages are."""

    git_url: Annotated[Text, After(checked_git_url)] = DEFAULT_GIT_URL


@dataclass(frozen=True, slots=True)
class JobSettings(Section):
    """Limits of asynchronous queries; None leaves the choice to the scheduler.

    More than `max_queued` waiting jobs are refused, and answers are kept for `retention_s`.
    """

    max_concurrent: Count | None = None
    max_queued: CountOrNone = 10_000
    retention_s: PositiveDuration = key("retention", default=12 * 3600.0)


@dataclass(frozen=True, slots=True)
class CpuSettings(Section):
    """The processors of a runtime; None means all."""

    cores: Count | None = None


@dataclass(frozen=True, slots=True)
class FunctionSettings(Section):
    """The functions of the manifest, unless they are off."""

    enabled: bool = True


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class RuntimeSettings(Section):
    """All settings under `runtime`; `tls` is None if the servers use plain text."""

    auth: AuthSettings = AuthSettings()
    tls: Annotated[TlsSettings, After(lambda tls: tls if tls.enabled else None)] | None = None
    cors: CorsSettings = CorsSettings()
    console: ConsoleSettings = ConsoleSettings()
    task_history: TaskHistorySettings = TaskHistorySettings()
    caching: CachingSettings = field(default_factory=CachingSettings)
    results_cache: OldResultsCache | None = None
    """Always None in a value: `caching.sql_results` has what it says."""
    query: QuerySettings = QuerySettings()
    cpu: CpuSettings = CpuSettings()
    dataset_load_parallelism: Count | None = None
    shutdown_timeout_s: Duration = key("shutdown_timeout", default=30.0)
    ready_state: ReadyState = "on_load"
    output_level: Annotated[Literal["info", "verbose", "very_verbose"] | None, Before(_lower)] = (
        None
    )
    params: Texts = field(default_factory=dict, repr=False)
    source_rate_control: Anything | None = None
    flight: FlightSettings = FlightSettings()
    http: HttpSettings = HttpSettings()
    mcp: McpSettings = McpSettings()
    quotas: QuotaSettings = QuotaSettings()
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    # Not `Anything`: Python would take this union for that of datasets, whose order is another.
    metrics: Items[dict[str, object]] | dict[str, object] | None = None
    functions: FunctionSettings = FunctionSettings()
    policy: Anything | None = None
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    jobs: JobSettings = JobSettings()
    iceberg: IcebergSettings = field(default_factory=IcebergSettings)
    packages: PackageSettings = PackageSettings()

    @classmethod
    def from_keys(cls, keys: dict[str, Any], folder: Path) -> "RuntimeSettings":
        """Return the settings, with those of the old name `results_cache` under the new one."""
        if (old := keys.pop("results_cache", None)) is not None:
            caching = keys.get("caching", CachingSettings())
            keys["caching"] = replace(caching, sql_results=old)
        return cls(**keys)

    @property
    def connections_of_address(self) -> int:
        """The limit on connections of one address."""
        return self.quotas.max_connections or max(1, self.http.max_connections // 2)
