"""Metrics of accelerated datasets. Refresh metrics use the names of the emulated runtime."""

from collections.abc import Iterable

from prometheus_client.core import Metric

from caraway_acceleration.service import Accelerations
from caraway_acceleration.standings.standings import Changing, DatasetStanding
from caraway_acceleration.versions.version import DatasetVersion
from caraway_serving.metric_families import Families, Table, counter, gauge, histogram

_REFRESHES: Table[Accelerations] = (
    histogram("dataset_acceleration_refresh_duration_ms",
              "Duration of refreshes that ran here and made a version, in milliseconds.",
              "dataset", lambda of: of.counting.durations),
    counter("dataset_acceleration_refresh_errors", "Refreshes that ran here and failed.",
            "dataset", lambda of: of.counting.errors),
)  # fmt: skip
_VERSIONS: Table[DatasetVersion] = (
    gauge("dataset_acceleration_last_refresh_time_ms",
          "When the current version was made, in milliseconds since 1970.",
          "dataset", lambda of: of.made_at.timestamp() * 1000),
    gauge("dataset_acceleration_rows", "Rows of the current version.",
          "dataset", lambda of: of.rows),
    gauge("dataset_acceleration_size_bytes", "Stored bytes of the current version.",
          "dataset", lambda of: of.size_bytes),
    gauge("dataset_acceleration_version", "Number of the current version.",
          "dataset", lambda of: of.number),
)  # fmt: skip
_STANDINGS: Table[DatasetStanding] = (
    gauge("dataset_acceleration_refresh_rows",
          "Rows that the running refresh has read; 0 without one.",
          "dataset", lambda of: of.stored.rows if of.is_loading else 0),
    gauge("dataset_acceleration_refresh_rows_per_second",
          "Rows that the running refresh reads in a second, on average; 0 without one.",
          "dataset", lambda of: of.rows_per_s),
)  # fmt: skip
_CHANGES: Table[tuple[Changing, DatasetVersion | None]] = (
    counter("dataset_changes_applied", "Changes that this process applied, counted as received.",
            "dataset", lambda of: of[0].applied),
    counter("dataset_changes_compactions", "Compactions that this process ran.",
            "dataset", lambda of: of[0].compactions),
    gauge("dataset_changes_waiting", "Change requests that wait here.",
          "dataset", lambda of: of[0].waiting),
    gauge("dataset_changes_log_rows", "Changes in the log that are not compacted yet.",
          "dataset", lambda of: of[1].log_rows if of[1] else 0),
    gauge("dataset_changes_log_entries", "Log entries that statements read.",
          "dataset", lambda of: len(of[1].read_log) if of[1] else 0),
)  # fmt: skip


def collect(accelerations: Accelerations, families: Families) -> Iterable[Metric]:
    """Yield the metric families."""
    standings = {each.refreshes.dataset: each for each in accelerations.standings()}
    yield from families.families_of(_REFRESHES, accelerations)
    versions = {name: each.version for name, each in standings.items() if each.version}
    yield from families.of_each(_VERSIONS, versions)
    yield from families.of_each(_STANDINGS, standings)
    changes = {
        name: (each.changing, each.version) for name, each in standings.items() if each.changing
    }
    yield from families.of_each(_CHANGES, changes)
