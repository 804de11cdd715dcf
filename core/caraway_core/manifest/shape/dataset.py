"""Datasets and views, with everything that can hang on one."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from caraway_core.manifest import column_types, names, unsupported
from caraway_core.manifest.shape.base import (
    Anything,
    Count,
    CountOrNone,
    Duration,
    PositiveDuration,
    Section,
    Text,
    TextList,
    Texts,
    Written,
)

Access = Literal["read", "read_write"]
ReadyState = Literal["on_load", "on_registration"]


def _check_origin(text: str) -> str:
    unsupported.check_connector(names.split_origin(text).connector)
    return text


def _check_type(text: str) -> str:
    column_types.arrow_type(text)
    return text


def _partitions(value: object) -> object:
    """Accept an expression, `{name: expression}`, and lists of them."""
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str | dict) for item in items):
        raise ValueError("must be a list of expressions or of 'name: expression'")
    return [text for item in items for text in _expressions(item)]


def _expressions(item: object) -> list[str]:
    if isinstance(item, dict):
        return [f"{key}: {value}" for key, value in item.items()]
    return [str(item)]


TableName = Annotated[Written, AfterValidator(names.canonical)]


class Chunking(Section):
    enabled: bool = False
    target_chunk_size: Count | None = None
    overlap_size: CountOrNone | None = None
    trim_whitespace: bool = True


class ColumnEmbedding(Section):
    from_: Text = Field(alias="from")
    row_id: TextList = Field(default_factory=list)
    chunking: Chunking | None = None


class ColumnFullTextSearch(Section):
    enabled: bool = True
    row_id: TextList = Field(default_factory=list)


class Column(Section):
    name: Annotated[Written, Field(min_length=1)]
    type: Annotated[str, AfterValidator(_check_type)] | None = None
    description: str | None = None
    metadata: Anything = Field(default_factory=dict)
    embeddings: list[ColumnEmbedding] = Field(default_factory=list)
    full_text_search: ColumnFullTextSearch | None = None


class Vectors(Section):
    enabled: bool = True
    engine: Text | None = None
    params: Texts = Field(default_factory=dict)


class FullTextSearch(Section):
    enabled: bool = True
    engine: Text | None = None
    params: Texts = Field(default_factory=dict)


class Replication(Section):
    enabled: bool = False


class Acceleration(Section):
    enabled: bool = True
    engine: Literal["arrow", "cayenne", "duckdb", "sqlite", "postgres", "turso"] = "arrow"
    mode: Literal["memory", "file", "file_create", "file_update"] = "memory"
    refresh_mode: (
        Literal[
            "full", "append", "changes", "caching", "disabled", "changes_after_load", "snapshot"
        ]
        | None
    ) = None
    refresh_check_interval: PositiveDuration | None = None
    refresh_cron: Text | None = None
    refresh_sql: Text | None = None
    refresh_data_window: PositiveDuration | None = None
    refresh_append_overlap: Duration | None = None
    refresh_retry_enabled: bool = True
    refresh_retry_max_attempts: CountOrNone | None = None
    refresh_jitter_enabled: bool = False
    refresh_jitter_max: Duration | None = None
    refresh_on_startup: Literal["auto", "always"] = "auto"
    retention_period: PositiveDuration | None = None
    retention_sql: Text | None = None
    retention_check_interval: PositiveDuration | None = None
    retention_check_enabled: bool = False
    on_zero_results: Literal["return_empty", "use_source"] = "return_empty"
    primary_key: Text | None = None
    indexes: dict[str, Literal["enabled", "unique"]] = Field(default_factory=dict)
    on_conflict: dict[str, Literal["drop", "upsert", "upsert_dedup", "upsert_dedup_by_row_id"]] = (
        Field(default_factory=dict)
    )
    partition_by: Annotated[list[str], BeforeValidator(_partitions)] = Field(default_factory=list)
    snapshots: Literal["disabled", "enabled", "bootstrap_only", "create_only"] = "disabled"
    snapshots_trigger: Text | None = None
    snapshots_trigger_threshold: Written | None = None
    snapshots_compaction: Written | None = None
    snapshots_creation_policy: Text | None = None
    write_mode: Literal["write_through", "write_back"] = "write_through"
    params: Texts = Field(default_factory=dict)
    metrics: Anything | list[Anything] | None = None


class Dataset(Section):
    from_: Annotated[Text, AfterValidator(_check_origin)] = Field(alias="from")
    name: TableName
    description: str | None = None
    metadata: Anything = Field(default_factory=dict)
    access: Access = "read"
    params: Texts = Field(default_factory=dict)
    columns: list[Column] = Field(default_factory=list)
    time_column: Text | None = None
    time_format: (
        Literal["timestamp", "timestamptz", "unix_seconds", "unix_millis", "ISO8601", "date"] | None
    ) = None
    time_partition_column: Text | None = None
    time_partition_format: Text | None = None
    ready_state: ReadyState | None = None
    unsupported_type_action: Literal["error", "warn", "ignore", "string"] = "error"
    check_availability: Literal["auto", "disabled"] = "auto"
    on_schema_change: Text | None = None
    metrics: Anything | list[Anything] | None = None
    vectors: Vectors | None = None
    full_text_search: FullTextSearch | None = None
    depends_on: TextList = Field([], alias="dependsOn")
    replication: Replication | None = None
    acceleration: Acceleration | None = None


class View(Section):
    name: TableName
    description: str | None = None
    sql: Text | None = None
    sql_ref: Text | None = None
    metadata: Anything = Field(default_factory=dict)
    acceleration: Acceleration | None = None
