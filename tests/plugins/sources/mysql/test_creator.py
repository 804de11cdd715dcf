"""Tables of MySQL that are being filled: who sees them, and what is left when the server dies."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.statements.definitions import TableDefinition
from caraway_plugins.sources.mysql.creator import MysqlCreation
from caraway_plugins.sources.mysql.tables import MysqlCatalog
from tests.kit.mariadb import DATABASE, Mariadb, serving

COLUMNS = pa.schema([pa.field("a", pa.int64())])
ROWS = pa.RecordBatch.from_pydict({"a": [1]}, schema=COLUMNS)


@pytest.fixture
def server() -> Iterator[Mariadb]:
    with serving(in_memory=True) as made:
        yield made


def listed(server: Mariadb) -> list[str]:
    return [each.name for each in MysqlCatalog().tables(asked(server))]


def asked(server: Mariadb) -> CatalogRequest:
    params = {name: each for name, each in server.params.items() if name != "mysql_db"}
    return CatalogRequest("c", "mysql", "", params, Path("/"), Path("/"))


def creation(server: Mariadb) -> MysqlCreation:
    table = MysqlCatalog().place(asked(server), ListedTable(DATABASE, "new"))
    return MysqlCreation(TableDefinition(TableName("c.caraway.new"), table), COLUMNS)


def kept(server: Mariadb) -> list[str]:
    return [name for (name,) in server.rows(f"SHOW TABLES IN {DATABASE}")]


def test_a_table_that_is_filled_is_not_listed(server: Mariadb) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield ROWS
        assert listed(server) == []
        assert [each.startswith("caraway_new_") for each in kept(server)] == [True]

    assert creation(server).insert_rows(rows()) == 1
    assert listed(server) == kept(server) == ["new"]


def test_one_that_others_create_meanwhile_stays(server: Mariadb) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield ROWS
        server.execute("CREATE TABLE new (b INT)")

    with pytest.raises(QueryError, match="a table or view with this name is there; nothing was"):
        creation(server).insert_rows(rows())
    assert kept(server) == ["new"] and server.rows("SELECT * FROM new") == []


def test_what_a_dead_server_keeps_is_said(server: Mariadb) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield ROWS
        server.kill()
        yield ROWS

    with pytest.raises(QueryError, match=r"table 'caraway_new_[0-9a-f]{16}' is left") as caught:
        creation(server).insert_rows(rows())
    server.start()
    (left,) = kept(server)
    assert f"'{left}'" in caught.value.message and listed(server) == []
