"""The `runtime` section: servers, limits, caches and telemetry."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from caraway_core.manifest.shape.base import (
    Anything,
    Count,
    CountOrNone,
    Duration,
    MemorySize,
    PositiveDuration,
    Section,
    Size,
    Text,
    TextList,
    Texts,
    Written,
)
from caraway_core.manifest.shape.dataset import ReadyState
from caraway_core.manifest.texts import locations
from caraway_core.manifest.texts.git_urls import DEFAULT_GIT_URL, checked_git_url

MIB = 1024 * 1024
HashingAlgorithm = Literal[
    "xxh3", "xxh32", "xxh64", "xxh128", "ahash", "siphash", "blake3", "sha256"
]
EvictionPolicy = Literal["lru", "tiny_lfu"]


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


def checked_location(text: str) -> str:
    locations.split(text)
    return text


class ApiKeySection(Section):
    enabled: bool = True
    keys: list[Written] = Field(default_factory=list)


class OidcClaims(Section):
    user_id: Text | None = None
    org_id: Text | None = None
    roles: Text | None = None


class Oidc(Section):
    enabled: bool = True
    issuer_url: Text | None = None
    audience: TextList = Field(default_factory=list)
    groups_claims: TextList = Field(default_factory=list)
    claims: OidcClaims | None = None


class AuthSection(Section):
    api_key_dashed: ApiKeySection | None = Field(None, alias="api-key")
    api_key: ApiKeySection | None = None
    oidc: Oidc | None = None


class TlsSection(Section):
    enabled: bool = True
    certificate_file: Text | None = None
    certificate: Text | None = None
    key_file: Text | None = None
    key: Text | None = None
    client_auth_mode: Literal["none", "request", "required"] = "none"
    client_auth_ca_file: Text | None = None


class CorsSection(Section):
    enabled: bool = False
    allowed_origins: TextList = Field(default_factory=lambda: ["*"])


class TaskHistorySection(Section):
    enabled: bool = True
    captured_output: Literal["none", "truncated"] = "none"
    captured_plan: Literal["none", "explain", "explain analyze"] = "none"
    min_sql_duration_s: Duration = Field(0.0, alias="min_sql_duration")
    min_plan_duration_s: Duration = Field(0.0, alias="min_plan_duration")
    retention_period_s: PositiveDuration = Field(8 * 3600.0, alias="retention_period")
    retention_check_interval_s: PositiveDuration = Field(900.0, alias="retention_check_interval")


class Cache(Section):
    enabled: bool = True
    max_size_bytes: Size = Field(128 * MIB, alias="max_size")
    item_ttl_s: Duration = Field(1.0, alias="item_ttl")
    eviction_policy: EvictionPolicy = "lru"
    hashing_algorithm: HashingAlgorithm = "xxh3"


class SqlResultsCacheSection(Cache):
    cache_key_type: Literal["plan", "sql"] = "plan"
    encoding: Literal["none", "zstd"] = "none"
    stale_while_revalidate_ttl_s: Duration = Field(0.0, alias="stale_while_revalidate_ttl")


class EmbeddingsCacheSection(Cache):
    max_size_bytes: Size = Field(64 * MIB, alias="max_size")
    item_ttl_s: Duration | None = Field(None, alias="item_ttl")  # type: ignore[assignment]  # a vector is never outdated
    max_stored_size_bytes: Size = Field(4096 * MIB, alias="max_stored_size")


class ResultsCacheSection(Section):
    enabled: bool = True
    cache_max_size: Size = 128 * MIB
    item_ttl: Duration = 1.0
    eviction_policy: EvictionPolicy = "lru"
    hashing_algorithm: HashingAlgorithm = "xxh3"
    cache_key_type: Literal["plan", "sql"] = "plan"


class CachingSection(Section):
    sql_results: SqlResultsCacheSection | None = None
    search_results: Cache | None = None
    embeddings: EmbeddingsCacheSection | None = None


class DistributionSection(Section):
    small_table_bytes: Size = Field(16 * MIB, alias="small_table_size")
    broadcast_bytes: Size = Field(16 * MIB, alias="broadcast_size")
    gather_bytes: Size = Field(16 * MIB, alias="gather_size")
    partition_bytes: Annotated[Size, Field(ge=MIB)] = Field(128 * MIB, alias="partition_size")


class QuerySection(Section):
    memory_limit_bytes: MemorySize | None = Field(None, alias="memory_limit")
    max_concurrent_queries: CountOrNone | None = None
    max_queued_queries: CountOrNone = 1000
    queue_timeout_s: Duration = Field(60.0, alias="queue_timeout")
    timeout_s: Duration | None = Field(600.0, alias="timeout")
    planning_timeout_s: Duration = Field(10.0, alias="planning_timeout")
    max_sql_size_bytes: Annotated[Size, Field(ge=1024)] = Field(4 * MIB, alias="max_sql_size")
    target_partitions: Count | None = None
    spill_compression: Literal["zstd", "lz4_frame", "uncompressed"] = "zstd"
    temp_directory: Text | None = None
    consistency: Literal["strong", "eventual"] = "strong"
    distribution: DistributionSection | None = None


class SchedulerSection(Section):
    state_location: Annotated[Text, AfterValidator(checked_location)] | None = None
    params: Texts = Field(default_factory=dict)
    partition_assignment_interval: PositiveDuration = 30.0
    max_partition_assignments_per_interval: Count = 100
    max_partitions_per_executor: Count = 1000
    partition_discovery_timeout: PositiveDuration = 60.0


class IcebergSection(Section):
    location: Annotated[Text, AfterValidator(checked_location)] | None = None
    params: Texts = Field(default_factory=dict)
    snapshot_retention_s: PositiveDuration = Field(3600.0, alias="snapshot_retention")
    access_delegation: list[Literal["remote-signing", "vended-credentials"]] = Field(
        default_factory=list
    )
    sts_role_arn: Text | None = None
    sts_endpoint: Annotated[Text, AfterValidator(checked_endpoint)] | None = None


class PackagesSection(Section):
    git_url: Annotated[Text, AfterValidator(checked_git_url)] = DEFAULT_GIT_URL


class JobsSection(Section):
    max_concurrent: Count | None = None
    max_queued: CountOrNone = 10_000
    retention_s: PositiveDuration = Field(12 * 3600.0, alias="retention")


class Cpu(Section):
    cores: Count | None = None


class ParallelReadsSection(Section):
    enabled: bool = True
    ticket_ttl_s: Annotated[PositiveDuration, Field(le=3600.0)] = Field(60.0, alias="ticket_ttl")


class FlightSection(Section):
    max_message_size_bytes: Annotated[Size, Field(ge=1024, lt=2**31)] = Field(
        16 * MIB, alias="max_message_size"
    )
    do_put_rate_limit_enabled: bool = True
    parallel_reads: ParallelReadsSection | None = None


class HttpSection(Section):
    max_body_size_bytes: Annotated[Size, Field(ge=1024)] = Field(128 * MIB, alias="max_body_size")
    max_body_memory_bytes: Annotated[Size, Field(ge=1024)] = Field(
        256 * MIB, alias="max_body_memory"
    )
    max_connections: Count = 4096


class McpSection(Section):
    allowed_hosts: TextList = Field(default_factory=list)


class QuotasSection(Section):
    max_connections: Count | None = None
    max_mcp_sessions: Count = 1_000
    max_flight_sessions: Count = 1_000
    max_prepared_statements: Count = 1_000
    max_responses: Count = 1_000
    max_responses_size_bytes: Annotated[Size, Field(ge=1024)] = Field(
        64 * MIB, alias="max_responses_size"
    )
    max_jobs: Count = 10_000
    max_job_results_size_bytes: Annotated[Size, Field(ge=1024)] | None = Field(
        None, alias="max_job_results_size"
    )


class OtelExporterSection(Section):
    enabled: bool = True
    endpoint: Text | None = None
    push_interval_s: PositiveDuration = Field(60.0, alias="push_interval")
    headers: Texts = Field(default_factory=dict)
    metrics: TextList = Field(default_factory=list)


class TelemetrySection(Section):
    enabled: bool = True
    metric_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_:]*$")] = ""
    properties: Texts = Field(default_factory=dict)
    otel_exporter: OtelExporterSection | None = None


class FunctionsSection(Section):
    enabled: bool = True


class ConsoleSection(Section):
    enabled: bool = True


def _output_level(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class RuntimeSection(Section):
    auth: AuthSection | None = None
    tls: TlsSection | None = None
    cors: CorsSection | None = None
    console: ConsoleSection | None = None
    task_history: TaskHistorySection | None = None
    caching: CachingSection | None = None
    results_cache: ResultsCacheSection | None = None
    query: QuerySection | None = None
    cpu: Cpu | None = None
    dataset_load_parallelism: Count | None = None
    shutdown_timeout_s: Duration = Field(30.0, alias="shutdown_timeout")
    ready_state: ReadyState = "on_load"
    output_level: Annotated[
        Literal["info", "verbose", "very_verbose"] | None, BeforeValidator(_output_level)
    ] = None
    params: Texts = Field(default_factory=dict)
    source_rate_control: Anything | None = None
    flight: FlightSection | None = None
    http: HttpSection | None = None
    mcp: McpSection | None = None
    quotas: QuotasSection | None = None
    telemetry: TelemetrySection | None = None
    metrics: list[Anything] | Anything | None = None
    functions: FunctionsSection | None = None
    policy: Anything | None = None
    scheduler: SchedulerSection | None = None
    jobs: JobsSection | None = None
    iceberg: IcebergSection | None = None
    packages: PackagesSection | None = None
