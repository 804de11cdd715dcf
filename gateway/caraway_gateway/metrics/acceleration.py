"""Metrics of accelerated datasets. Refresh metrics use the names of the emulated runtime."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_acceleration.service import Accelerations
from caraway_core.process.durations import Labels
from caraway_serving.metric_families import Families

_LABELS: Labels = ("dataset",)


def collect(accelerations: Accelerations, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    yield families.histogram(
        "dataset_acceleration_refresh_duration_ms",
        "Duration of refreshes that ran here and made a version, in milliseconds.",
        _LABELS,
        accelerations.counting.durations,
    )
    yield families.counter(
        "dataset_acceleration_refresh_errors",
        "Refreshes that ran here and failed.",
        _LABELS,
        accelerations.counting.errors,
    )
    found = {
        (standing.refreshes.dataset,): standing.version
        for standing in accelerations.standings()
        if standing.version is not None
    }
    yield families.gauges(
        "dataset_acceleration_last_refresh_time_ms",
        "When the current version was made, in milliseconds since 1970.",
        _LABELS,
        {key: version.made_at.timestamp() * 1000 for key, version in found.items()},
    )
    yield families.gauges(
        "dataset_acceleration_rows",
        "Rows of the current version.",
        _LABELS,
        {key: version.rows for key, version in found.items()},
    )
    yield families.gauges(
        "dataset_acceleration_size_bytes",
        "Stored bytes of the current version.",
        _LABELS,
        {key: version.size_bytes for key, version in found.items()},
    )
    yield families.gauges(
        "dataset_acceleration_version",
        "Number of the current version.",
        _LABELS,
        {key: version.number for key, version in found.items()},
    )
    yield families.gauges(
        "dataset_acceleration_refresh_rows",
        "Rows that the running refresh has read; 0 without one.",
        _LABELS,
        {
            (standing.refreshes.dataset,): standing.stored.rows if standing.is_loading else 0
            for standing in accelerations.standings()
        },
    )
    yield families.gauges(
        "dataset_acceleration_refresh_rows_per_second",
        "Rows that the running refresh reads in a second, on average; 0 without one.",
        _LABELS,
        {
            (standing.refreshes.dataset,): standing.rows_per_s
            for standing in accelerations.standings()
        },
    )
    yield from _changes(accelerations, families)


def _changes(accelerations: Accelerations, families: Families) -> Iterable[Metric]:
    """Yield the metric families of datasets that receive changes."""
    found = {
        (standing.refreshes.dataset,): (standing.changing, standing.version)
        for standing in accelerations.standings()
        if standing.changing is not None
    }
    yield families.counter(
        "dataset_changes_applied",
        "Changes that this process applied, counted as received.",
        _LABELS,
        {key: changing.applied for key, (changing, _) in found.items()},
    )
    yield families.counter(
        "dataset_changes_compactions",
        "Compactions that this process ran.",
        _LABELS,
        {key: changing.compactions for key, (changing, _) in found.items()},
    )
    yield families.gauges(
        "dataset_changes_waiting",
        "Change requests that wait here.",
        _LABELS,
        {key: changing.waiting for key, (changing, _) in found.items()},
    )
    yield families.gauges(
        "dataset_changes_log_rows",
        "Changes in the log that are not compacted yet.",
        _LABELS,
        {key: version.log_rows if version else 0 for key, (_, version) in found.items()},
    )
    yield families.gauges(
        "dataset_changes_log_entries",
        "Log entries that statements read.",
        _LABELS,
        {key: len(version.read_log) if version else 0 for key, (_, version) in found.items()},
    )
