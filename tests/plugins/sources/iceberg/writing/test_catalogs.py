"""Catalogs that move a table to its next metadata, if no other writer did."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from caraway_core.errors import DatasetError, ExecutionError
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.iceberg import pointer_catalogs, pointers
from caraway_plugins.sources.iceberg.pointers import MovingCatalog, PointerPath
from tests.kit import glue_server, postgres
from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import SMALL, Written


@contextmanager
def in_sqlite(folder: Path) -> Iterator[Written]:
    yield written_tables.create(folder, SMALL)


@contextmanager
def in_postgres(folder: Path) -> Iterator[Written]:
    with postgres.serving() as server:
        place = "postgresql+psycopg2://postgres@/postgres?host=" + server.params["pg_host"]
        params = {**server.params, "pg_pass": "hunter2"}
        catalog = SqlCatalog("p", uri=place)
        yield written_tables.create_in(catalog, folder, "postgres", params, SMALL)
        catalog.engine.dispose()


@contextmanager
def in_glue(folder: Path) -> Iterator[Written]:
    with glue_server.serving() as server:
        params = dict(server.params)
        yield written_tables.create_in(server.catalog, folder, "glue", params, SMALL)


@pytest.fixture(params=[in_glue, in_postgres, in_sqlite])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    made: Callable[[Path], AbstractContextManager[Written]] = request.param
    with made(tmp_path) as table:
        yield table


def moving(request: SourceRequest) -> tuple[MovingCatalog, PointerPath]:
    path = pointers.path_of(request.path)
    assert path is not None
    catalog = pointer_catalogs.moving_catalog(path)
    assert catalog is not None
    return catalog, path


def test_rows_are_added_and_replaced(written: Written) -> None:
    rows = pa.table({"id": [1, 2, 3], "v": ["a", None, "c"]})
    assert written.insert(rows) == 3
    written.catalog.load_table("n.t").append(rows.slice(0, 1))
    assert written.insert(rows.slice(2)) == 1
    placed, there = written.placed()
    assert written.replace(placed, there.slice(0, 2)) == 2
    assert written.read() == written.own_rows()
    assert len(written.read()) == 3


def test_only_what_was_seen_is_moved(written: Written) -> None:
    catalog, path = moving(written.request)
    before = catalog.location(written.request, path)
    table = written.catalog.load_table("n.t")
    assert not catalog.move(written.request, path, "file:///elsewhere", before)
    assert catalog.location(written.request, path) == before
    table.append(pa.table({"id": [1], "v": ["a"]}))
    after = catalog.location(written.request, path)
    assert not catalog.move(written.request, path, before, before)
    assert catalog.move(written.request, path, after, before)
    assert catalog.location(written.request, path) == before
    assert written.read() == []


def test_a_table_that_is_not_there_is_not_moved(written: Written) -> None:
    catalog, _ = moving(written.request)
    path = pointers.path_of(written.request.path.replace("/t", "/none"))
    assert path is not None
    with pytest.raises(DatasetError) as caught:
        catalog.move(written.request, path, "a", "b")
    assert caught.value.type == "not_found"


def test_hive_moves_no_tables() -> None:
    assert pointer_catalogs.moving_catalog(PointerPath("hive", ("n",), "t")) is None


def test_a_catalog_that_refuses_a_change_leaves_no_row(tmp_path: Path) -> None:
    written = written_tables.create(tmp_path, SMALL)
    refuse = "BEGIN SELECT RAISE(ABORT, 'hunter2'); END"
    with closing(sqlite3.connect(tmp_path / "c.db")) as connection:
        connection.execute(f"CREATE TRIGGER no BEFORE UPDATE ON iceberg_tables {refuse}")
    with pytest.raises(ExecutionError, match=r"refuses the change; .* no row was") as caught:
        written.insert(pa.table({"id": [1], "v": ["a"]}))
    assert "hunter2" not in caught.value.message
    assert written.read() == []
