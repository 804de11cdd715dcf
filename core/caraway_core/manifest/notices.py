"""Keys that a manifest may hold and that change nothing in this build."""

from collections.abc import Iterator
from typing import Any

from caraway_core.manifest.document import Document

_IN_MANIFEST = {
    "runtime.results_cache": "is the old name of 'runtime.caching.sql_results'; use that",
    "runtime.caching.sql_results.hashing_algorithm": "has no effect",
    "runtime.results_cache.hashing_algorithm": "has no effect",
    "runtime.params": "has no effect",
    "runtime.metrics": "has no effect",
}
_IN_DATASET = {
    "time_format": "has no effect without acceleration",
    "time_partition_column": "has no effect without acceleration",
    "time_partition_format": "has no effect without acceleration",
    "on_schema_change": "has no effect without acceleration",
    "dependsOn": "has no effect: everything loads at once",
    "metrics": "has no effect",
}
_IGNORED_IN_DEPENDENCY = ("runtime", "secrets")


def of_manifest(document: Document) -> Iterator[str]:
    """Yield a notice for each key of the top level that changes nothing."""
    yield from _notices(document, _IN_MANIFEST)


def of_dataset(document: Document) -> Iterator[str]:
    """Yield a notice for each key of a dataset that changes nothing."""
    yield from _notices(document, _IN_DATASET)


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


def _value(value: Any, location: tuple[str, ...]) -> Any:
    for step in location:
        value = value.get(step) if isinstance(value, dict) else None
    return value
