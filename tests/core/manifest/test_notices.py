"""Keys that change nothing are noticed, with their place, and no others are."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from caraway_core.manifest import notices
from caraway_core.manifest.documents import document
from caraway_core.manifest.documents.document import Document
from caraway_core.manifest.values.acceleration import Acceleration, SnapshotSettings
from tests.core.manifest.conftest import Loads

FILE = Path("caraway.yaml")


def parsed(text: str) -> Document:
    return document.parse(text, FILE)


def noticed(found: Iterator[str]) -> list[str]:
    return [each.removeprefix("caraway.yaml:") for each in found]


def test_keys_of_the_manifest_without_effect_are_noticed_with_their_line() -> None:
    text = (
        "runtime:\n  params: {a: 1}\n  caching:\n    sql_results:\n      encoding: zstd\n"
        "      item_ttl: 1s\n  results_cache: {enabled: true}\n"
    )
    found = noticed(notices.of_manifest(parsed(text)))
    assert sorted(found) == [
        "2: runtime.params: has no effect",
        "5: runtime.caching.sql_results.encoding: has no effect: answers are kept as they are",
        "7: runtime.results_cache: is the old name of 'runtime.caching.sql_results'; use that",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "name: a",
        "runtime:",
        "runtime: []",
        "runtime: x",
        "{runtime: {params: {}}}",
        "{runtime: {params: }}",
        "{runtime: {metrics: []}}",
        "{runtime: {caching: 5}}",
        "{runtime: {caching: {sql_results: [encoding]}}}",
        "{runtime.params: {a: 1}}",
    ],
)
def test_absent_empty_and_misshapen_keys_are_not_noticed(text: str) -> None:
    """The check against the shape refuses what has another shape."""
    assert noticed(notices.of_manifest(parsed(text))) == []


@pytest.mark.parametrize("value", ["false", "0", "''", "off"])
def test_key_with_a_false_value_is_noticed(value: str) -> None:
    found = noticed(
        notices.of_dataset(parsed(f"{{from: file:a.csv, check_availability: {value}}}"))
    )
    assert found == ["1: check_availability: has no effect: sources are always looked at"]


@pytest.mark.parametrize(
    ("acceleration", "count"),
    [("", 2), ("acceleration: {enabled: false}", 2), ("acceleration: {enabled: true}", 0)],
)
def test_columns_of_time_matter_only_with_acceleration(acceleration: str, count: int) -> None:
    text = f"from: file:a.csv\ntime_column: t\ntime_format: iso8601\n{acceleration}\n"
    found = noticed(notices.of_dataset(parsed(text)))
    assert len([each for each in found if "without acceleration" in each]) == count


@pytest.mark.parametrize(
    ("text", "is_noticed"),
    [
        ("{from: 'memory:store', access: read_write}", False),
        ("{from: 'memory:store', access: read}", True),
        ("{from: 'memory:store'}", True),
        ("{from: 'memory: store'}", True),
        ("{from: 'memory:other'}", False),
        ("{from: 7}", False),
        ("{name: x}", False),
    ],
)
def test_memories_that_models_cannot_keep_are_noticed(text: str, is_noticed: bool) -> None:
    found = noticed(notices.of_dataset(parsed(text)))
    assert any("read_write" in each for each in found) is is_noticed


def test_sections_that_dependencies_may_not_set_are_noticed() -> None:
    found = noticed(notices.of_dependency(parsed("name: d\nruntime: {a: 1}\nsecrets: []\n")))
    assert found == ["2: runtime: is ignored in a dependency"]
    found = noticed(notices.of_dependency(parsed("name: d\nsecrets: [{from: env}]\n")))
    assert found == ["2: secrets: is ignored in a dependency"]


@pytest.mark.parametrize(
    ("use", "is_noticed"), [("enabled", True), ("bootstrap_only", True), ("disabled", False)]
)
def test_snapshots_without_a_place_are_noticed(loads: Loads, use: Any, is_noticed: bool) -> None:
    text = "datasets: [{from: file:a.parquet, name: a}, {from: file:b.parquet, name: b}]"
    plain, other = loads(text).datasets
    with_snapshots = replace(other, acceleration=Acceleration(snapshots=SnapshotSettings(use=use)))
    found = list(notices.without_snapshots(FILE, [plain, with_snapshots]))
    assert ["dataset 'b'" in each for each in found] == [True] * is_noticed
