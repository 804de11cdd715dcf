"""Rules of change sources in manifests."""

import pytest

from tests.core.manifest.conftest import Loads, Refuses

COLUMNS = "columns: [{name: id, type: bigint}, {name: note, type: text}]"


def dataset(origin: str, *keys: str) -> str:
    lines = [f"  - from: {origin}", "    name: t", *(f"    {key}" for key in keys)]
    return "\n".join(("datasets:", *lines, ""))


@pytest.mark.parametrize(
    ("origin", "keys"),
    [
        ("cdc:orders", (COLUMNS, "acceleration: {primary_key: id}")),
        ("cdc:orders", (COLUMNS, "acceleration: {refresh_mode: changes}")),
        ("debezium:topic", (COLUMNS, "acceleration: {primary_key: id}")),
        ("postgres:public.t", ("acceleration: {refresh_mode: changes}",)),
        ("postgres:t", (COLUMNS, "acceleration: {refresh_mode: changes, primary_key: id}")),
        ("mysql:t", ("acceleration: {refresh_mode: changes}",)),
        ("postgres:t", ("columns: [{name: id}]", "acceleration: {refresh_mode: changes}")),
    ],
)
def test_a_dataset_that_follows_changes_is_fine(
    loads: Loads, origin: str, keys: tuple[str, ...]
) -> None:
    (found,) = loads(dataset(origin, *keys)).datasets
    assert found.acceleration is not None and found.acceleration.refresh.mode == "changes"


@pytest.mark.parametrize(
    ("keys", "mode"),
    [((), None), (("acceleration: {enabled: true}",), "full")],
)
def test_a_table_of_postgresql_may_be_read_without_its_changes(
    loads: Loads, keys: tuple[str, ...], mode: str | None
) -> None:
    (found,) = loads(dataset("postgres:t", *keys)).datasets
    assert (found.acceleration and found.acceleration.refresh.mode) == mode


@pytest.mark.parametrize("acceleration", ["", "acceleration: {}"])
def test_a_source_that_is_not_followed_may_be_written(loads: Loads, acceleration: str) -> None:
    keys = [each for each in ("access: read_write", acceleration) if each]
    (found,) = loads(dataset("postgres:t", *keys)).datasets
    assert found.access == "read_write"


@pytest.mark.parametrize(
    ("origin", "keys", "said"),
    [
        ("cdc:t", (COLUMNS,), "'cdc' is only read by its changes; add 'acceleration: {refresh_"),
        (
            "debezium:t",
            (COLUMNS, "acceleration: {refresh_mode: full}"),
            "refresh_mode: the connector 'debezium' has no 'full', because it is only read by its",
        ),
        (
            "debezium:t",
            ("columns: [{name: id, type: int}, {name: note}]", "acceleration: {}"),
            "columns[1]: column 'note' needs a 'type': the connector 'debezium' does not say it",
        ),
        (
            "postgres:t",
            (
                "columns: [{name: id, type: int}, {name: note}]",
                "acceleration: {refresh_mode: changes}",
            ),
            "column 'note' needs a 'type': either all columns have one, or none",
        ),
        (
            "debezium:t",
            (COLUMNS, "access: read_write", "acceleration: {}"),
            "access: the connector 'debezium' cannot be written to",
        ),
        (
            "file:a.csv",
            ("acceleration: {refresh_mode: changes}",),
            "has no changes; these have: cdc, debezium, dynamodb, kafka, mongodb, mysql, postgres",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(
    refuses: Refuses, origin: str, keys: tuple[str, ...], said: str
) -> None:
    (problem,) = refuses("name: app\n" + dataset(origin, *keys))
    assert said in problem
