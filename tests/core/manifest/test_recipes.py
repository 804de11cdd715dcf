"""Manifests of the kinds that users of another runtime have: each loads, or says for each key why
it does not.

They have the keys, connectors and params of published recipes, and other names and texts.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from caraway_core.errors import ManifestError
from caraway_core.manifest import load

RECIPES = Path(__file__).with_name("recipes")
AS_FILES = "means the engine 'file' here: the data are kept in its files"
LOAD: Mapping[str, Sequence[str]] = {
    "constraints": [f"12: datasets[0].acceleration.engine: 'duckdb' {AS_FILES}"],
    "databases": [],
    "federation": [],
    "graphql": [f"15: datasets[0].acceleration.engine: 'cayenne' {AS_FILES}"],
    "http": [],
    "localpod": [f"12: datasets[1].acceleration.engine: 'duckdb' {AS_FILES}"],
}
"""The notices of those that load."""
REFUSED: Mapping[str, Sequence[str]] = {
    "caching": [
        "13: datasets[0].acceleration.refresh_mode: 'caching' is refused: rows of a source are "
        "kept as a whole; 'runtime.caching.sql_results' keeps answers; known: full, append, "
        "changes, disabled"
    ],
    "catalog": [
        "6: runtime.flight.max_message_size: must be less than 2147483648",
        "9: catalogs[0].from: no connector of catalogs 'pg'; known: adbc, caraway, clickhouse, "
        "duckdb, flightsql, glue, iceberg, mysql, odbc, postgres, sqlite",
    ],
    "debezium": [
        "18: datasets[0].acceleration.refresh_mode: 'changes' needs a 'primary_key' with this "
        "engine"
    ],
    "github": [
        "19: datasets[2].params.github_include_comments: no github param 'github_include_comments'",
        "20: datasets[2].params.github_max_comments_fetched: no github param "
        "'github_max_comments_fetched'",
    ],
    "partitioning": [
        "17: datasets[1].acceleration.refresh_cron: '*/30 * * * * *' is not a cron expression: "
        "five fields, in UTC, for example '0 3 * * MON-FRI'"
    ],
    "rate_control": [
        "6: runtime.source_rate_control: 'runtime.source_rate_control' is refused: processes do "
        "not share a count of requests; write 'requests_per_second_limit' at a dataset, which "
        "limits each process"
    ],
    "replication": [
        "16: datasets[0].params.pg_replication_initial_snapshot: no postgres param "
        "'pg_replication_initial_snapshot'; did you mean 'pg_replication_slot'?"
    ],
    "streams": [
        "9: datasets[0].acceleration.refresh_mode: 'changes' needs a 'primary_key' with this "
        "engine",
    ],
}
"""The beginnings of the problems of those that do not."""


def test_each_recipe_is_tried() -> None:
    assert {each.stem for each in RECIPES.glob("*.yaml")} == {*LOAD, *REFUSED}


@pytest.mark.parametrize("name", sorted(LOAD))
def test_a_recipe_loads(name: str) -> None:
    file = RECIPES / f"{name}.yaml"
    manifest = load(file, checks_params=True)
    assert [each.removeprefix(f"{file}:") for each in manifest.notices] == LOAD[name]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_recipe_says_for_each_key_why_not(name: str) -> None:
    file = RECIPES / f"{name}.yaml"
    with pytest.raises(ManifestError) as caught:
        load(file, checks_params=True)
    found = [str(each).removeprefix(f"{file}:") for each in caught.value.problems]
    assert len(found) == len(REFUSED[name])
    for problem, expected in zip(found, REFUSED[name], strict=True):
        assert problem.startswith(expected)
