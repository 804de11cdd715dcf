"""Tables are created with all of their rows, or not at all, and dropped."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from caraway_core.errors import DatasetError, ExecutionError, InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.iceberg.catalog import IcebergCatalog
from caraway_plugins.sources.iceberg.writing.writer import IcebergWriter
from tests.kit import iceberg_rest
from tests.kit.iceberg_rest import IcebergRestServer
from tests.plugins.sources.iceberg.writing.written_tables import ROWS, files, in_order

TABLE = ListedTable("n", "made")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[IcebergRestServer]:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("n")
    with iceberg_rest.serving(catalog) as served:
        yield served


def request(server: IcebergRestServer, path: str = "") -> CatalogRequest:
    here = Path("/")
    return CatalogRequest("c", "iceberg", path or server.url, {}, here, here)


def definition(server: IcebergRestServer, **options: Any) -> TableDefinition:
    place = IcebergCatalog().place(request(server), TABLE)
    return TableDefinition(TableName("c.n.made"), place, **options)


def create(server: IcebergRestServer, rows: pa.Table, **options: Any) -> int:
    made = IcebergWriter().create(definition(server, **options), rows.schema)
    return made.insert_rows(iter(rows.to_batches()))


def drop(server: IcebergRestServer) -> int:
    return IcebergWriter().drop(definition(server).table).write_rows()


def judged(server: IcebergRestServer) -> Any:
    return server.catalog.load_table("n.made")


def test_a_table_has_its_rows_when_it_is_there(server: IcebergRestServer) -> None:
    assert create(server, ROWS) == 4
    table = judged(server)
    assert len(table.metadata.snapshots) == 1
    assert repr(in_order(table.scan().to_arrow())) == repr(in_order(ROWS))
    assert len(server.commits) == 1


def test_a_table_without_rows_has_its_columns(server: IcebergRestServer) -> None:
    assert create(server, ROWS.slice(0, 0)) == 0
    table = judged(server)
    assert table.metadata.snapshots == []
    assert [each.name for each in table.schema().fields] == ROWS.column_names


def test_types_that_iceberg_lacks_are_wider_or_refused(server: IcebergRestServer) -> None:
    rows = pa.table({"a": pa.array([200], pa.uint8()), "b": pa.array([2**32 - 1], pa.uint32())})
    assert create(server, rows) == 1
    assert judged(server).scan().to_arrow().to_pylist() == [{"a": 200, "b": 2**32 - 1}]
    odd = pa.table({"d": pa.array([1], pa.duration("us"))})
    with pytest.raises(InvalidQueryError, match="column 'd' is duration"):
        create(server, odd)


def test_keys_and_required_columns_take_no_null(server: IcebergRestServer, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "v": ["a", None], "w": ["x", "y"]})
    there = files(tmp_path)
    with pytest.raises(InvalidQueryError, match="column 'v' takes no NULL; nothing was created"):
        create(server, rows, required=("v",))
    assert (files(tmp_path), server.catalog.table_exists("n.made")) == (there, False)
    assert create(server, rows, required=("w",), primary_key=("id",)) == 2
    schema = judged(server).schema()
    assert [each.required for each in schema.fields] == [True, False, True]
    assert schema.identifier_field_names() == {"id"}


def test_a_table_that_is_there_is_kept(server: IcebergRestServer) -> None:
    create(server, ROWS)
    with pytest.raises(ExecutionError, match="has a table of that name; nothing was created"):
        create(server, ROWS.slice(0, 1))
    assert judged(server).scan().to_arrow().num_rows == 4


def test_of_two_at_once_one_is_created(server: IcebergRestServer, tmp_path: Path) -> None:
    def others(_table: str) -> None:
        if not server.catalog.table_exists("n.made"):
            server.catalog.create_table("n.made", ROWS.schema)

    server.before = others
    with pytest.raises(ExecutionError, match=r"another writer created .*; nothing was created"):
        create(server, ROWS)
    assert judged(server).scan().to_arrow().num_rows == 0
    assert not [each for each in files(tmp_path) if each.suffix == ".parquet"]


def test_a_commit_whose_answer_is_lost_is_looked_up(server: IcebergRestServer) -> None:
    server.after = lambda _table: 502
    assert create(server, ROWS) == 4
    drop(server)
    server.before = lambda _table: 503
    with pytest.raises(ExecutionError, match="look whether it is there before you run it again"):
        create(server, ROWS)


def test_rows_that_fail_create_nothing(server: IcebergRestServer, tmp_path: Path) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise ExecutionError("division by zero")

    there = files(tmp_path)
    with pytest.raises(ExecutionError, match="division by zero"):
        IcebergWriter().create(definition(server), ROWS.schema).insert_rows(rows())
    assert (files(tmp_path), server.catalog.table_exists("n.made")) == (there, False)


def test_a_dropped_table_leaves_its_files(server: IcebergRestServer, tmp_path: Path) -> None:
    create(server, ROWS)
    there = files(tmp_path)
    assert drop(server) == 0
    assert not server.catalog.table_exists("n.made")
    assert files(tmp_path) == there
    with pytest.raises(ExecutionError, match="nothing was dropped"):
        drop(server)


def test_a_namespace_that_is_not_there_is_an_error(server: IcebergRestServer) -> None:
    place = IcebergCatalog().place(request(server), ListedTable("none", "t"))
    made = IcebergWriter().create(TableDefinition(TableName("c.none.t"), place), ROWS.schema)
    with pytest.raises(ExecutionError, match="nothing was created"):
        made.insert_rows(iter(ROWS.to_batches()))


@pytest.mark.parametrize("path", ["sqlite://", "postgres://n", "glue://", "hive://n"])
def test_other_catalogs_create_no_tables(server: IcebergRestServer, path: str) -> None:
    with pytest.raises(DatasetError, match="in catalogs that speak REST"):
        IcebergCatalog().place(request(server, path), TABLE)


def test_a_place_says_no_secrets(server: IcebergRestServer) -> None:
    asked = CatalogRequest(
        "c", "iceberg", server.url, {"iceberg_token": "hunter2"}, Path("/"), Path("/")
    )
    place: RemoteTable = IcebergCatalog().place(asked, TABLE)
    assert "hunter2" not in repr(place)
    assert place.title == "iceberg table 'c.n.made'"
