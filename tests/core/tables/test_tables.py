"""Kinds of tables cross to executors as values, and none shows a secret."""

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import (
    FileScan,
    FilesTable,
    Keys,
    MemoryTable,
    RemoteColumn,
    RemoteSplit,
    RemoteTable,
    ResultPlace,
    StoredTable,
    StoreSpec,
    ViewTable,
)

SCHEMA = pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"})])
STORE = StoreSpec("s3", "bucket", "alias", {"s3_secret": "hunter2"})
SCAN = FileScan("parquet", ("/x/1", "/x/2"), SCHEMA, ".parquet", store=STORE, size_bytes=7)
CHUNKS = (ChunkInfo(0, 5, 50, "x"), ChunkInfo(1, 6, 60, "y"))
PLACE = ResultPlace("s3", "p", STORE)
SPLITS = (RemoteSplit("id", None, 5, 10), RemoteSplit("id", 5, None, 20))
REMOTE = RemoteTable(
    SCHEMA, "postgres", ("public", "t"), (RemoteColumn("a", pa.int64()),),
    {"password": "hunter2"}, 30, SPLITS,
)  # fmt: skip
TABLES: list[Any] = [
    FilesTable(SCHEMA, (SCAN, SCAN), 9), FilesTable(SCHEMA, (SCAN,)), FilesTable(SCHEMA, ()),
    MemoryTable(SCHEMA, pa.table({"a": [1]}, SCHEMA)), REMOTE, ViewTable("SELECT 1"),
    StoredTable(SCHEMA, PLACE, "k", CHUNKS), StoredTable(SCHEMA, PLACE, "k", CHUNKS[:1]),
    StoredTable(SCHEMA, PLACE, "k", CHUNKS, Keys(("a",))), StoredTable(SCHEMA, PLACE, "k", ()),
]  # fmt: skip


@pytest.mark.parametrize("table", TABLES, ids=lambda table: type(table).__name__)
def test_a_table_is_a_value_without_secrets(table: Any) -> None:
    assert pickle.loads(pickle.dumps(table)) == table
    assert "hunter2" not in repr(table) and "hunter2" not in str(table)


@pytest.mark.parametrize(
    ("table", "size", "rows", "is_divisible", "is_shareable", "is_external"),
    list(zip(
        TABLES,
        (14, 7, 0, 0, 30, 0, 110, 50, 110, 0),
        (9, None, None, None, None, None, 11, 5, None, 0),
        (False, True, False, False, True, False, True, False, True, False),
        (False, True, False, False, True, False, True, True, True, True),
        (False, False, False, False, True, False, False, False, False, False),
        strict=True,
    )),
)  # fmt: skip
def test_what_is_known_of_a_table(
    table: Any, size: int, rows: int | None, is_divisible: bool, is_shareable: bool,
    is_external: bool,
) -> None:  # fmt: skip
    assert (table.size_bytes, table.row_count) == (size, rows)
    assert (table.is_divisible, table.is_shareable) == (is_divisible, is_shareable)
    assert table.is_external is is_external


def test_columns_have_a_size_if_all_files_say_so() -> None:
    scan = replace(SCAN, column_bytes=tuple(range(1, len(SCHEMA) + 1)))
    sizes = {name: 2 * size for size, name in enumerate(SCHEMA.names, 1)}
    assert FilesTable(SCHEMA, (scan, scan)).column_bytes == sizes
    assert FilesTable(SCHEMA, (scan, SCAN)).column_bytes == {}
    assert REMOTE.column_bytes == {}


def test_files_that_an_executor_has_elsewhere() -> None:
    table = FilesTable(SCHEMA, (SCAN, SCAN))
    moved = table.moved({"/x/2": "/y/2", "/x": "/z"})
    assert [scan.paths for scan in moved.scans] == [("/x/1", "/y/2")] * 2
    assert table.moved({}) == table and REMOTE.moved({"a": "b"}) is REMOTE


def test_splits_have_names_of_their_own() -> None:
    splits = [RemoteSplit("id", low, high, 0) for low, high in
              ((None, 1), (None, None), (1, None), (1, 2), (-1, 2))]  # fmt: skip
    assert len({each.name for each in splits}) == len(splits)
    assert SPLITS[0].name == pickle.loads(pickle.dumps(SPLITS[0])).name


@pytest.mark.parametrize(
    ("place", "under", "title"),
    [
        (ResultPlace("file", "/a"), "/a/x", "/a"), (ResultPlace("file", "/a/"), "/a/x", "/a/"),
        (ResultPlace("s3", "", STORE), "x", "s3://bucket/"), (PLACE, "p/x", "s3://bucket/p"),
    ],
)  # fmt: skip
def test_places(place: ResultPlace, under: str, title: str) -> None:
    assert place.under("x").path == under and place.under("x").store == place.store
    assert place.title == title
