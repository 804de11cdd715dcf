"""The places whose tables sources of catalogs list; a source joins with a class in `CATALOGS`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from caraway_core.protocols.catalog_sources import CatalogRequest
from tests.kit import (
    adbc_drivers,
    duckdb_files,
    flight_sql_server,
    iceberg_catalog,
    odbc_drivers,
    sqlite_files,
)
from tests.kit.caraway_tables import ServedRuntime
from tests.kit.clickhouse_server import ClickhouseServer
from tests.kit.flight_sql_server import FlightSqlServer
from tests.kit.glue_server import GlueServer
from tests.kit.hive_server import HiveServer
from tests.kit.iceberg_catalog import IcebergCatalogServer
from tests.kit.iceberg_folders import FolderOfTables
from tests.kit.iceberg_pointers import PointedTables
from tests.kit.mariadb import Mariadb
from tests.kit.postgres import Server

SCHEMA = "of catalogs"


class CatalogKind(Protocol):
    """Runs statements where a source lists tables."""

    schema: str

    def run(self, *statements: str) -> None: ...

    def request(self) -> CatalogRequest: ...

    def absent(self) -> CatalogRequest:
        """Return the request for a place that does not exist."""
        ...


class PostgresDatabase:
    schema = SCHEMA

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._server: Server = request.getfixturevalue("postgres")

    def run(self, *statements: str) -> None:
        self._server.execute(*statements)

    def request(self, **params: str) -> CatalogRequest:
        given = {**self._server.params, "pg_pass": "hunter2", **params}
        return CatalogRequest("c", "postgres", "", given, self._folder, self._folder)

    def absent(self) -> CatalogRequest:
        return self.request(pg_db="none")


class MysqlServer:
    """A server, whose databases are schemas."""

    schema = SCHEMA

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._server: Mariadb = request.getfixturevalue("mariadb_server")

    def run(self, *statements: str) -> None:
        self._server.execute(
            *(each.replace('"', "`").replace(" CASCADE", "") for each in statements)
        )

    def request(self, **params: str) -> CatalogRequest:
        login = {"mysql_db": "", "mysql_user": "reader", "mysql_pass": "hunter2"}
        given = {**self._server.params, **login, **params}
        return CatalogRequest("c", "mysql", "", given, self._folder, self._folder)

    def absent(self) -> CatalogRequest:
        return self.request(mysql_db="none")


class InClickhouse:
    """A server, whose databases are schemas."""

    schema = SCHEMA

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._server: ClickhouseServer = request.getfixturevalue("clickhouse")

    def run(self, *statements: str) -> None:
        for each in statements:
            sql = each.replace(" SCHEMA ", " DATABASE ").replace(" CASCADE", "")
            if sql.startswith("CREATE TABLE"):
                sql = sql.replace(" text)", " Nullable(String))")
                sql += " ENGINE = MergeTree ORDER BY tuple()"
            self._server.run(sql)

    def request(self, **params: str) -> CatalogRequest:
        given = {**self._server.request("").params, **params}
        return CatalogRequest("c", "clickhouse", "", given, self._folder, self._folder)

    def absent(self) -> CatalogRequest:
        return self.request(clickhouse_db="none")


class SqliteFile:
    """A file, whose only schema is `main`."""

    schema = "main"

    def __init__(self, folder: Path, _request: pytest.FixtureRequest) -> None:
        self._folder = folder

    def run(self, *statements: str) -> None:
        sqlite_files.run(self._folder / "c.db", *statements)

    def request(self, file: str = "c.db") -> CatalogRequest:
        params = {"sqlite_file": file}
        return CatalogRequest("c", "sqlite", "", params, self._folder, self._folder)

    def absent(self) -> CatalogRequest:
        return self.request("none.db")


class DuckdbFile:
    schema = SCHEMA

    def __init__(self, folder: Path, _request: pytest.FixtureRequest) -> None:
        self._folder = folder

    def run(self, *statements: str) -> None:
        duckdb_files.run(self._folder / "c.duckdb", *statements)

    def request(self, file: str = "c.duckdb") -> CatalogRequest:
        params = {"duckdb_open": file}
        return CatalogRequest("c", "duckdb", "", params, self._folder, self._folder)

    def absent(self) -> CatalogRequest:
        return self.request("none.duckdb")


class IcebergRest:
    """A REST catalog, whose tables are pinned to their snapshots."""

    schema = SCHEMA

    def __init__(self, _folder: Path, request: pytest.FixtureRequest) -> None:
        self._server: IcebergCatalogServer = request.getfixturevalue("iceberg_server")

    def run(self, *statements: str) -> None:
        self._server.run(*statements)

    def request(self, path: str = "") -> CatalogRequest:
        folder, url = self._server.folder, self._server.url + path
        params = {"iceberg_oauth2_credential": iceberg_catalog.CREDENTIAL}
        used = frozenset({f"{SCHEMA}.t"})
        return CatalogRequest("c", "iceberg", url, params, folder, folder, used)

    def absent(self) -> CatalogRequest:
        return self.request("/v1/namespaces/none")


class IcebergInSqlite:
    """A catalog of PyIceberg in a file."""

    schema = SCHEMA

    def __init__(self, folder: Path, _request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._tables = PointedTables(folder, SqlCatalog("p", uri=f"sqlite:///{folder}/p.db"))
        self.run = self._tables.run

    def request(self, file: str = "p.db") -> CatalogRequest:
        return self._request("sqlite://", sqlite_file=file)

    def absent(self) -> CatalogRequest:
        return self.request("none.db")

    def _request(self, path: str, **params: str) -> CatalogRequest:
        used = frozenset({f"{SCHEMA}.t"})
        return CatalogRequest("c", "iceberg", path, params, self._folder, self._folder, used)


class IcebergInFolder(IcebergInSqlite):
    """A folder of tables, as Hadoop's catalogs have them."""

    def __init__(self, folder: Path, _request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._tables = PointedTables(folder, FolderOfTables(folder / "warehouse"))
        self.run = self._tables.run

    def request(self, path: str = "warehouse") -> CatalogRequest:
        return self._request(path)

    def absent(self) -> CatalogRequest:
        return self.request("none")


class IcebergInPostgres(IcebergInSqlite):
    """A catalog of PyIceberg in PostgreSQL."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._server: Server = request.getfixturevalue("postgres")
        drop = "DROP TABLE IF EXISTS {} CASCADE"
        self._server.execute(*map(drop.format, ("iceberg_tables", "iceberg_namespace_properties")))
        self._folder = folder
        place = "postgresql+psycopg2://postgres@/postgres?host="
        catalog = SqlCatalog("p", uri=place + self._server.params["pg_host"])
        self._tables = PointedTables(folder, catalog)
        self.run = self._tables.run

    def request(self, base: str = "") -> CatalogRequest:
        given = {**self._server.params, "pg_pass": "hunter2"}
        if base:
            given["pg_db"] = base
        return self._request("postgres://", **given)

    def absent(self) -> CatalogRequest:
        return self.request("none")


class IcebergInGlue(IcebergInSqlite):
    """A catalog of Glue as moto imitates it."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._server: GlueServer = request.getfixturevalue("glue")
        self._folder = folder
        self._tables = PointedTables(folder, self._server.catalog)
        self.run = self._tables.run

    def request(self, path: str = "glue://") -> CatalogRequest:
        return self._request(path, **self._server.params)

    def absent(self) -> CatalogRequest:
        return self.request("glue://none")


class Glue(IcebergInGlue):
    """A catalog of Glue by the names of other manifests."""

    def request(self, path: str = "") -> CatalogRequest:
        made = self._request(path, **self._server.named_params)
        return replace(made, connector="glue")

    def absent(self) -> CatalogRequest:
        return self.request("none")


class IcebergInHive(IcebergInSqlite):
    """A Hive metastore, which keeps names in lower case."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._server: HiveServer = request.getfixturevalue("hive")
        self._server.tables.clear()
        self._folder = folder
        self._tables = PointedTables(folder, self._server.catalog)
        self.run = self._tables.run

    def request(self, path: str = "hive://") -> CatalogRequest:
        return self._request(path, **self._server.params)

    def absent(self) -> CatalogRequest:
        return self.request("hive://none")


class FlightSql:
    """A server over a DuckDB, which lists its catalogs, schemas and tables."""

    schema = SCHEMA

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._server: FlightSqlServer = request.getfixturevalue("flight_sql")

    def run(self, *statements: str) -> None:
        for each in statements:
            self._server.run(each)

    def request(self, path: str = "") -> CatalogRequest:
        params = {"flightsql_endpoint": self._server.uri, **flight_sql_server.LOGIN}
        used = frozenset({f"{SCHEMA}.t"})
        return CatalogRequest("c", "flightsql", path, params, self._folder, self._folder, used)

    def absent(self) -> CatalogRequest:
        return self.request("none")


class OverAdbc:
    """A database that a driver lists, here of PostgreSQL."""

    schema = SCHEMA

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._server: Server = request.getfixturevalue("postgres")

    def run(self, *statements: str) -> None:
        self._server.execute(*statements)

    def request(self, path: str = "postgres") -> CatalogRequest:
        uri = adbc_drivers.postgres_uri(self._server) + "&password=hunter2"
        params = {"adbc_driver": "postgresql", "adbc_uri": uri, "adbc_dialect": "postgresql"}
        used = frozenset({f"{SCHEMA}.t"})
        return CatalogRequest("c", "adbc", path, params, self._folder, self._folder, used)

    def absent(self) -> CatalogRequest:
        return self.request("none")


class OverOdbc(MysqlServer):
    """A database that is asked over a driver, here of MariaDB."""

    def request(self, path: str = "") -> CatalogRequest:  # type: ignore[override]
        asked = odbc_drivers.of_mariadb(self._server, "t", odbc_dialect="mysql")
        used = frozenset({f"{SCHEMA}.t"})
        return CatalogRequest("c", "odbc", path, asked.params, self._folder, self._folder, used)

    def absent(self) -> CatalogRequest:
        return self.request("none")


class CarawayRuntime:
    """Another runtime, whose datasets and views are in its catalog `caraway`."""

    schema = SCHEMA

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder = folder
        self._runtime: ServedRuntime = request.getfixturevalue("runtime")

    def run(self, *statements: str) -> None:
        self._runtime.run(*statements)

    def request(self, path: str = "", key: str = "reader") -> CatalogRequest:
        params = {"caraway_endpoint": f"grpc://{self._runtime.address}", "caraway_api_key": key}
        used = frozenset({f"{SCHEMA}.t"})
        return CatalogRequest("c", "caraway", path, params, self._folder, self._folder, used)

    def absent(self) -> CatalogRequest:
        return self.request("none")


CATALOGS: Mapping[str, Callable[[Path, pytest.FixtureRequest], CatalogKind]] = {
    "adbc": OverAdbc,
    "caraway": CarawayRuntime,
    "clickhouse": InClickhouse,
    "duckdb": DuckdbFile,
    "flightsql": FlightSql,
    "glue": Glue,
    "iceberg": IcebergRest,
    "iceberg in a folder": IcebergInFolder,
    "iceberg in glue": IcebergInGlue,
    "iceberg in hive": IcebergInHive,
    "iceberg in postgres": IcebergInPostgres,
    "iceberg in sqlite": IcebergInSqlite,
    "mysql": MysqlServer,
    "odbc": OverOdbc,
    "postgres": PostgresDatabase,
    "sqlite": SqliteFile,
}
"""A source comes in several kinds, which have its name first."""
