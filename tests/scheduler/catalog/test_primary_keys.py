"""The columns of primary keys, as a table."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_scheduler.catalog import primary_keys
from caraway_scheduler.catalog.states import DatasetState


def state(name: str, *columns: str, has_rows: bool = True) -> tuple[TableName, DatasetState]:
    keys = SimpleNamespace(primary=columns) if columns else None
    version: Any = SimpleNamespace(keys=keys) if has_rows else None
    dataset = Dataset(name, "file:t", "file", "t", Path("/"))
    return TableName(name), DatasetState(dataset, version=version)


def test_keys_are_listed_by_dataset_and_position() -> None:
    datasets = dict(
        [
            state("sales.orders", "year", "id"),
            state("people", "id"),
            state("plain"),
            state("empty", has_rows=False),
        ]
    )
    assert primary_keys.table(datasets).to_pylist() == [
        {"table_schema": "public", "table_name": "people", "column_name": "id",
         "ordinal_position": 1},
        {"table_schema": "sales", "table_name": "orders", "column_name": "year",
         "ordinal_position": 1},
        {"table_schema": "sales", "table_name": "orders", "column_name": "id",
         "ordinal_position": 2},
    ]  # fmt: skip


def test_table_without_keys_has_its_columns() -> None:
    assert primary_keys.table({}).schema == primary_keys.SCHEMA
