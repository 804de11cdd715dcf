"""Notices for manifest keys that are accepted but have no effect."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.rules import acceleration_rules, search_rules
from caraway_core.manifest.texts.names import MEMORY_PATH
from caraway_core.manifest.values.values import Dataset

_ASSIGNED = (
    "has no effect: partitions are assigned at once when a version is made or executors change"
)
_IN_MANIFEST = {
    "runtime.results_cache": "is the old name of 'runtime.caching.sql_results'; use that",
    "runtime.caching.sql_results.hashing_algorithm": "has no effect",
    "runtime.results_cache.hashing_algorithm": "has no effect",
    "runtime.caching.sql_results.eviction_policy": "has no effect: it is always lru",
    "runtime.caching.search_results.hashing_algorithm": "has no effect",
    "runtime.caching.search_results.eviction_policy": "has no effect: it is always lru",
    "runtime.caching.sql_results.cache_key_type": "has no effect: it is always sql",
    "runtime.caching.sql_results.encoding": "has no effect: answers are kept as they are",
    "runtime.caching.sql_results.stale_while_revalidate_ttl": (
        "has no effect: answers older than 'item_ttl' are not served"
    ),
    "runtime.task_history.captured_plan": (
        "has no effect: EXPLAIN and EXPLAIN ANALYZE show the plan of a statement"
    ),
    "runtime.task_history.min_plan_duration": "has no effect: the history keeps no plans",
    "runtime.telemetry.otel_exporter.push_interval": "has no effect: traces are sent as they end",
    "runtime.telemetry.otel_exporter.metrics": "has no effect: metrics are scraped, not pushed",
    "runtime.scheduler.partition_assignment_interval": _ASSIGNED,
    "runtime.scheduler.max_partition_assignments_per_interval": _ASSIGNED,
    "runtime.scheduler.max_partitions_per_executor": (
        "has no effect: all partitions are assigned, since statements read all of them"
    ),
    "runtime.scheduler.partition_discovery_timeout": (
        "has no effect: the version of a dataset lists its partitions"
    ),
    "runtime.params": "has no effect",
    "runtime.metrics": "has no effect",
}
_IN_DATASET = {
    "unsupported_type_action": (
        "has no effect: databases give types without an Arrow form as text, and other sources "
        "refuse them"
    ),
    "check_availability": "has no effect: sources are always looked at",
    "time_partition_column": "has no effect: filters on a partition column skip files",
    "time_partition_format": "has no effect: filters on a partition column skip files",
    "on_schema_change": "has no effect",
    "dependsOn": "has no effect: everything loads at once",
    "metrics": "has no effect",
}
_WITHOUT_ACCELERATION = {
    "time_column": "has no effect without acceleration",
    "time_format": "has no effect without acceleration",
}
_IGNORED_IN_DEPENDENCY = ("runtime", "secrets")


def of_manifest(document: Document) -> Iterator[str]:
    """Yield a notice for each key of the top level that changes nothing."""
    yield from _notices(document, _IN_MANIFEST)


def _memories(document: Document) -> Iterator[str]:
    source = str(document.value.get("from", "")).replace(" ", "")
    if source == f"memory:{MEMORY_PATH}" and document.value.get("access") != "read_write":
        message = "models keep memories in it only with `access: read_write`"
        yield str(document.problem(("from",), message))


def of_dataset(document: Document) -> Iterator[str]:
    """Yield a notice for each key of a dataset that changes nothing."""
    yield from _notices(document, _IN_DATASET)
    yield from _memories(document)
    yield from search_rules.notices(document)
    if acceleration_rules.is_on(document):
        yield from acceleration_rules.notices(document)
    else:
        yield from _notices(document, _WITHOUT_ACCELERATION)


def without_snapshots(file: Path, datasets: Iterable[Dataset]) -> Iterator[str]:
    """Yield a notice for each dataset that wants snapshots, where there is no place for them."""
    for dataset in datasets:
        if dataset.acceleration is not None and dataset.acceleration.snapshots.use != "disabled":
            yield (
                f"{file}: dataset '{dataset.name}': 'snapshots' has no effect without the "
                "manifest's 'snapshots.location'"
            )


def of_dependency(document: Document) -> Iterator[str]:
    """Yield a notice for each section that only counts in the manifest that was started."""
    for key in _IGNORED_IN_DEPENDENCY:
        if document.value.get(key):
            yield str(document.problem((key,), "is ignored in a dependency"))


def _notices(document: Document, keys: dict[str, str]) -> Iterator[str]:
    for key, message in keys.items():
        location = tuple(key.split("."))
        if _value(document.value, location) not in (None, {}, []):
            yield str(document.problem(location, message))


def _value(value: object, location: tuple[str, ...]) -> Any:
    for step in location:
        value = value.get(step) if isinstance(value, dict) else None
    return value
