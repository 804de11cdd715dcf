"""Servers of MariaDB as catalogs: the lists of their databases, and what these leave out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_plugins.sources.mysql.tables import MysqlCatalog
from tests.kit.engine import rows, session
from tests.kit.mariadb import Mariadb, serving

HERE = Path()
INJECTION = "x' OR '1'='1\"; DROP TABLE t; -- ${x}"


@pytest.fixture(scope="module")
def server() -> Iterator[Mariadb]:
    with serving() as made:
        yield made


def asked(server: Mariadb, path: str = "", **params: str) -> CatalogRequest:
    given = {**server.params, "mysql_db": "", **params}
    return CatalogRequest("c", "mysql", path, given, HERE, HERE)


def listed(server: Mariadb, schema: str, **params: str) -> dict[str, str]:
    found = MysqlCatalog().tables(asked(server, **params))
    return {each.name: each.mark for each in found if each.schema == schema}


def test_tables_and_views_are_listed_and_nothing_else(server: Mariadb) -> None:
    server.execute(
        "CREATE DATABASE `Kinds`",
        "CREATE TABLE `Kinds`.t (a int)",
        f"CREATE TABLE `Kinds`.`{INJECTION}` (a int)",
        "CREATE VIEW `Kinds`.v AS SELECT 1 AS a",
        "CREATE TABLE `Kinds`.h (a int) WITH SYSTEM VERSIONING",
        "CREATE TABLE `Kinds`.p (a int) PARTITION BY HASH (a) PARTITIONS 2",
        "CREATE SEQUENCE `Kinds`.s",
        "CREATE PROCEDURE `Kinds`.f() SELECT 1",
    )
    assert set(listed(server, "Kinds")) == {"t", INJECTION, "v", "h", "p"}
    schemas = {each.schema for each in MysqlCatalog().tables(asked(server))}
    assert "Kinds" in schemas
    assert not {"information_schema", "mysql", "performance_schema", "sys"} & schemas


async def test_names_that_differ_in_capitals_are_two_tables(server: Mariadb) -> None:
    server.execute(
        "CREATE DATABASE twice",
        "CREATE DATABASE `Twice`",
        "CREATE TABLE twice.t (a int)",
        "CREATE TABLE twice.`T` (b int, c int)",
        "CREATE TABLE `Twice`.t (d int)",
        "INSERT INTO twice.`T` VALUES (1, 2)",
    )
    assert set(listed(server, "twice")) == {"t", "T"} and set(listed(server, "Twice")) == {"t"}
    assert not listed(server, "Twice", mysql_db="twice")
    specs = {
        (schema, name): MysqlCatalog().resolve(asked(server), ListedTable(schema, name))
        for schema, name in (("twice", "t"), ("twice", "T"), ("Twice", "t"))
    }
    assert [each.schema.names for each in specs.values()] == [["a"], ["b", "c"], ["d"]]
    over = session({"c.twice.t": specs["twice", "T"]})
    assert await rows(over, "SELECT c FROM c.twice.t WHERE b = 1") == [{"c": 2}]


def test_a_catalog_may_be_one_database(server: Mariadb) -> None:
    server.execute("CREATE DATABASE one", "CREATE TABLE one.t (a int)")
    found = list(MysqlCatalog().tables(asked(server, mysql_db="one")))
    assert [each.title for each in found] == ["one.t"]
    url = "mysql://root@127.0.0.1:1/one?sslmode=disabled"
    assert MysqlCatalog().resolve(asked(server, mysql_db="one"), found[0]).schema.names == ["a"]
    with pytest.raises(DatasetError) as caught:
        list(MysqlCatalog().tables(asked(server, mysql_connection_string=f"{url}&x=hunter2")))
    assert caught.value.type == "unavailable" and "hunter2" not in caught.value.message


async def test_a_database_may_have_any_name(server: Mariadb) -> None:
    for name in ("main", "select", "a b", "x' OR 1; --"):
        server.execute(f"CREATE DATABASE `{name}`", f"CREATE TABLE `{name}`.`order` (`group` int)")
        server.execute(f"INSERT INTO `{name}`.`order` VALUES (7)")
        table = ListedTable(name, "order", listed(server, name)["order"])
        spec = MysqlCatalog().resolve(asked(server), table)
        assert await rows(session({"c.s.t": spec}), "SELECT * FROM c.s.t") == [{"group": 7}]


def test_marks_change_with_the_columns_alone(server: Mariadb) -> None:
    server.execute("CREATE DATABASE marks", "CREATE TABLE marks.t (a int, b text)")
    before = listed(server, "marks")["t"]
    server.execute("INSERT INTO marks.t VALUES (1, 'x')", "ANALYZE TABLE marks.t")
    assert listed(server, "marks")["t"] == before
    seen = {before}
    for change in (
        "ADD c int", "DROP a", "MODIFY b varchar(3)", "RENAME COLUMN b TO d",
        "MODIFY d varchar(3) COLLATE utf8mb4_bin",
    ):  # fmt: skip
        server.execute(f"ALTER TABLE marks.t {change}")
        seen.add(listed(server, "marks")["t"])
    assert len(seen) == 6


def test_marks_know_the_last_of_many_columns(server: Mariadb) -> None:
    columns = ", ".join(f"a{'x' * 50}{each} int" for each in range(600))
    server.execute("CREATE DATABASE wide", f"CREATE TABLE wide.t ({columns}, z int)")
    before = listed(server, "wide")["t"]
    server.execute("ALTER TABLE wide.t MODIFY z smallint")
    assert listed(server, "wide")["t"] != before


def test_only_what_the_user_may_read_is_listed(server: Mariadb) -> None:
    server.execute(
        "CREATE DATABASE shop",
        "CREATE TABLE shop.granted (a int)",
        "CREATE TABLE shop.columns (a int, b int)",
        "CREATE TABLE shop.writable (a int)",
        "CREATE TABLE shop.refused (a int)",
        "CREATE USER reader@localhost",
        "GRANT SELECT ON shop.granted TO reader@localhost",
        "GRANT SELECT (a) ON shop.columns TO reader@localhost",
        "GRANT INSERT ON shop.writable TO reader@localhost",
    )
    assert set(listed(server, "shop", mysql_user="reader")) == {"granted", "columns"}
    columns = ListedTable("shop", "columns")
    spec = MysqlCatalog().resolve(asked(server, mysql_user="reader"), columns)
    assert spec.schema.names == ["a"]
    with pytest.raises(DatasetError) as caught:
        refused = ListedTable("shop", "refused")
        MysqlCatalog().resolve(asked(server, mysql_user="reader"), refused)
    assert caught.value.type == "not_found"


def test_what_is_wrong_is_said_without_the_password(server: Mariadb) -> None:
    def refused(path: str = "", **params: str) -> DatasetError:
        with pytest.raises(DatasetError) as caught:
            list(MysqlCatalog().tables(asked(server, path, **params)))
        assert "hunter2" not in caught.value.message
        return caught.value

    assert refused(path="shop").type == "invalid"
    assert refused(mysql_user="nobody", mysql_pass="hunter2").type == "auth"
    assert refused(mysql_db="none").type == "not_found"
    assert refused(mysql_db="x`; DROP DATABASE shop; --").type == "not_found"
    away = {"mysql_host": "127.0.0.1", "mysql_tcp_port": "1"}
    assert refused(**away, mysql_pass="hunter2").type == "unavailable"
    assert refused(mysql_host="").type == "invalid"
    assert refused(mysql_port="1").type == "invalid"
