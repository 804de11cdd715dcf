"""Metrics of accelerated datasets; those of refreshes have the peer's names."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_core.durations import Labels
from caraway_scheduler.acceleration.service import Accelerations
from caraway_serving.metric_families import Families

_LABELS: Labels = ("dataset",)


def collect(accelerations: Accelerations, families: Families) -> Iterable[Metric]:
    """Read them from the state."""
    yield families.histogram(
        "dataset_acceleration_refresh_duration_ms",
        "Time of refreshes that ran here and made a version, in milliseconds.",
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
        "When the version that is read was made, in milliseconds since 1970.",
        _LABELS,
        {key: version.made_at.timestamp() * 1000 for key, version in found.items()},
    )
    yield families.gauges(
        "dataset_acceleration_rows",
        "Rows of the version that is read.",
        _LABELS,
        {key: version.rows for key, version in found.items()},
    )
    yield families.gauges(
        "dataset_acceleration_size_bytes",
        "Bytes of the version that is read, as they are stored.",
        _LABELS,
        {key: version.size_bytes for key, version in found.items()},
    )
    yield families.gauges(
        "dataset_acceleration_version",
        "Number of the version that is read.",
        _LABELS,
        {key: version.number for key, version in found.items()},
    )
    yield from _changes(accelerations, families)


def _changes(accelerations: Accelerations, families: Families) -> Iterable[Metric]:
    """Tell of datasets that take changes."""
    found = {
        (standing.refreshes.dataset,): (standing.changing, standing.version)
        for standing in accelerations.standings()
        if standing.changing is not None
    }
    yield families.counter(
        "dataset_changes_applied",
        "Changes that this process applied, by the count of what was sent.",
        _LABELS,
        {key: changing.applied for key, (changing, _) in found.items()},
    )
    yield families.counter(
        "dataset_changes_compactions",
        "Times that this process made a log part of its base.",
        _LABELS,
        {key: changing.compactions for key, (changing, _) in found.items()},
    )
    yield families.gauges(
        "dataset_changes_waiting",
        "Requests with changes that wait here.",
        _LABELS,
        {key: changing.waiting for key, (changing, _) in found.items()},
    )
    yield families.gauges(
        "dataset_changes_log_rows",
        "Changes that are not part of the base yet.",
        _LABELS,
        {key: version.log_rows if version else 0 for key, (_, version) in found.items()},
    )
    yield families.gauges(
        "dataset_changes_log_entries",
        "Entries of the log that statements read.",
        _LABELS,
        {key: len(version.read_log) if version else 0 for key, (_, version) in found.items()},
    )
