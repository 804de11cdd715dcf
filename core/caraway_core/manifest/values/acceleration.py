"""The acceleration settings of a dataset as plain frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from caraway_core.loading.declarations import RefreshMode
from caraway_core.partitions.keys import PartitionBy

Engine = Literal["arrow", "file"]
Mode = Literal["memory", "file", "file_create", "file_update"]
ConflictAction = Literal["drop", "upsert", "upsert_dedup", "upsert_dedup_by_row_id"]
SnapshotUse = Literal["disabled", "enabled", "bootstrap_only", "create_only"]
SnapshotTrigger = Literal["refresh_complete", "time_interval", "stream_batches"]
TimeFormat = Literal["timestamp", "timestamptz", "unix_seconds", "unix_millis", "ISO8601", "date"]


@dataclass(frozen=True, slots=True)
class Index:
    """Columns that are looked up together."""

    columns: tuple[str, ...]
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class OnConflict:
    """The action for a row whose key already exists."""

    columns: tuple[str, ...]
    action: ConflictAction


@dataclass(frozen=True, slots=True)
class Refresh:
    """When and how the data is reloaded.

    `period_s` and `cron` are never both set. `data_window_s` and `append_overlap_s` look at the
    dataset's `time_column`. `retry_max_attempts` None means no end, 0 no retry. `jitter_max_s` 0
    means none, and None a tenth of the time between two refreshes.
    """

    mode: RefreshMode = "full"
    period_s: float | None = None
    cron: str | None = None
    sql: str | None = None
    data_window_s: float | None = None
    append_overlap_s: float | None = None
    retry_max_attempts: int | None = None
    jitter_max_s: float | None = 0.0
    on_startup: Literal["auto", "always"] = "auto"


@dataclass(frozen=True, slots=True)
class Retention:
    """Which rows expire: by age in the dataset's `time_column`, or by a DELETE statement.

    `check_interval_s` None means that only refreshes look.
    """

    period_s: float | None = None
    sql: str | None = None
    check_interval_s: float | None = None


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """The snapshots that are written to object storage, and read from it at startup.

    `every_s` belongs to the trigger `time_interval`, `every_batches` to `stream_batches`.
    """

    use: SnapshotUse = "disabled"
    trigger: SnapshotTrigger = "refresh_complete"
    every_s: float | None = None
    every_batches: int | None = None
    is_compacted: bool = False
    creation_policy: Literal["always", "on_change"] = "on_change"
    keep: int = 2
    """The number of snapshots that are kept."""


@dataclass(frozen=True, slots=True)
class Acceleration:
    """One enabled acceleration; column names are stored without quotes."""

    engine: Engine = "arrow"
    mode: Mode = "memory"
    refresh: Refresh = Refresh()
    retention: Retention | None = None
    on_zero_results: Literal["return_empty", "use_source"] = "return_empty"
    primary_key: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    on_conflict: tuple[OnConflict, ...] = ()
    sort_by: tuple[str, ...] = ()
    partition_by: PartitionBy = field(default_factory=PartitionBy)
    replicas: int = 1
    snapshots: SnapshotSettings = SnapshotSettings()
    write_mode: Literal["write_through", "write_back"] = "write_through"
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
