"""Converts the checked shape of an acceleration into values and applies the defaults."""

from caraway_core.loading import registry
from caraway_core.loading.declarations import RefreshMode
from caraway_core.manifest.shape import acceleration as shapes
from caraway_core.manifest.texts import units
from caraway_core.manifest.values.acceleration import (
    Acceleration,
    Engine,
    Index,
    Mode,
    OnConflict,
    Refresh,
    Retention,
    SnapshotSettings,
)
from caraway_core.partitions.keys import PartitionBy, columns

REFRESH_MODES: tuple[RefreshMode, ...] = ("full", "append", "changes", "disabled")


def acceleration(shape: shapes.AccelerationSection | None, connector: str) -> Acceleration | None:
    """Build the acceleration of a dataset; None where there is none or it is off."""
    if shape is None or not shape.enabled:
        return None
    engine = engine_of(shape.engine, shape.mode)
    return Acceleration(
        engine=engine,
        mode=_mode(engine, shape.mode),
        refresh=_refresh(shape, connector),
        retention=_retention(shape),
        on_zero_results=shape.on_zero_results,
        primary_key=columns(shape.primary_key) if shape.primary_key else (),
        indexes=tuple(Index(columns(key), v == "unique") for key, v in shape.indexes.items()),
        on_conflict=tuple(OnConflict(columns(key), v) for key, v in shape.on_conflict.items()),
        sort_by=tuple(column for text in shape.sort_by for column in columns(text)),
        partition_by=PartitionBy(tuple(shape.partition_by)),
        replicas=shape.replicas,
        snapshots=_snapshots(shape),
        write_mode=shape.write_mode,
        params=shape.params,
    )


def engine_of(engine: str | None, mode: str | None) -> Engine:
    """Return our engine for a manifest; foreign engines that keep files map to `file`."""
    if engine is None:
        return "arrow" if mode in (None, "memory") else "file"
    return "arrow" if engine == "arrow" else "file"


def refresh_mode_of(mode: str | None, connector: str) -> str:
    """Return the refresh mode; without one, the usual one of the connector."""
    return mode or registry.connector(connector).modes[0]


def threshold(trigger: str, text: str) -> float:
    """Read `snapshots_trigger_threshold`: seconds or batches, depending on the trigger.

    Raises:
        ValueError: it is neither, or the trigger takes none.
    """
    if trigger == "time_interval":
        value = units.seconds(text)
    elif trigger == "stream_batches":
        value = int(text) if text.isdecimal() and len(text) < 10 else 0
    else:
        raise ValueError("needs the 'snapshots_trigger' time_interval or stream_batches")
    if value <= 0:
        raise ValueError(f"'{text}' is no threshold; write a duration or number above 0")
    return value


def _mode(engine: Engine, mode: Mode | None) -> Mode:
    if engine == "arrow":
        return "memory"
    return "file" if mode in (None, "memory") else mode


def _refresh(shape: shapes.AccelerationSection, connector: str) -> Refresh:
    mode = refresh_mode_of(shape.refresh_mode, connector)
    return Refresh(
        # Modes that are not built are refused by a rule of their own.
        mode=next((refresh_mode for refresh_mode in REFRESH_MODES if refresh_mode == mode), "full"),
        period_s=shape.refresh_check_interval,
        cron=shape.refresh_cron,
        sql=shape.refresh_sql,
        data_window_s=shape.refresh_data_window,
        append_overlap_s=shape.refresh_append_overlap,
        retry_max_attempts=shape.refresh_retry_max_attempts if shape.refresh_retry_enabled else 0,
        jitter_max_s=shape.refresh_jitter_max if shape.refresh_jitter_enabled else 0.0,
        on_startup=shape.refresh_on_startup,
    )


def _retention(shape: shapes.AccelerationSection) -> Retention | None:
    if not shape.retention_check_enabled:
        return None
    return Retention(shape.retention_period, shape.retention_sql, shape.retention_check_interval)


def _snapshots(shape: shapes.AccelerationSection) -> SnapshotSettings:
    trigger = shape.snapshots_trigger or "refresh_complete"
    text = shape.snapshots_trigger_threshold
    try:
        every = None if text is None else threshold(trigger, text)
    except ValueError:
        every = None  # A rule of its own reports it.
    return SnapshotSettings(
        use=shape.snapshots,
        trigger=trigger,
        every_s=every if trigger == "time_interval" else None,
        every_batches=int(every) if every and trigger == "stream_batches" else None,
        is_compacted=shape.snapshots_compaction == "enabled",
        creation_policy=shape.snapshots_creation_policy,
        keep=shape.snapshots_keep,
    )
