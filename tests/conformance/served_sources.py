"""Kinds of sources with a server of their own."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.ids import TableName
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.api import filtering
from tests.conformance.source_kinds import Kind
from tests.kit import adbc_drivers, api_server, graphql_server, odbc_drivers
from tests.kit import mariadb as mariadb_tables
from tests.kit.api_server import ApiAnswer, ApiRequest, ApiServer
from tests.kit.clickhouse_server import ClickhouseServer
from tests.kit.dynamodb_server import DynamodbServer
from tests.kit.fakesnow_server import FakesnowServer
from tests.kit.file_servers import ServedFolder
from tests.kit.flight_sql_server import FlightSqlServer
from tests.kit.mariadb import Mariadb
from tests.kit.mongo_server import MongoServer
from tests.kit.search_server import SearchServer
from tests.kit.spark_server import SparkServer


class Mysql:
    """A table of MariaDB."""

    def __init__(self, server: Mariadb) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        mariadb_tables.load(self._server, name, rows, "key" if "key" in rows.schema.names else "")
        return mariadb_tables.request(self._server, name, mysql_pass="")

    def absent(self) -> SourceRequest:
        return mariadb_tables.request(self._server, "none")


class FlightSql:
    """A table of a Flight SQL server."""

    def __init__(self, server: FlightSqlServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.load(name, rows)
        return self._server.request(name)

    def absent(self) -> SourceRequest:
        return self._server.request("none")


class Adbc:
    """A table of a Flight SQL server, over a driver that the manifest names."""

    def __init__(self, server: FlightSqlServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.load(name, rows)
        return adbc_drivers.of_flight_sql(self._server, name)

    def absent(self) -> SourceRequest:
        return adbc_drivers.of_flight_sql(self._server, "none")


class Clickhouse:
    """A table of ClickHouse, which has no moments without a zone."""

    def __init__(self, server: ClickhouseServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.load(name, rows)
        return replace(self._server.request(name), declared=tuple(rows.schema))

    def absent(self) -> SourceRequest:
        return self._server.request("none")


class Snowflake:
    """A table of Snowflake, whose integers are decimals."""

    def __init__(self, server: FakesnowServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.load(name, rows)
        request = self._server.request(f'DB.S."{name}"')
        return replace(request, declared=tuple(rows.schema))

    def absent(self) -> SourceRequest:
        return self._server.request("DB.S.NONE")


class Spark:
    """A table of Spark Connect."""

    def __init__(self, server: SparkServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.load(name, rows)
        return self._server.request(name)

    def absent(self) -> SourceRequest:
        return self._server.request_of("none")


class Odbc:
    """A table of MariaDB, over a driver that the manifest names; it has no booleans and zones."""

    def __init__(self, server: Mariadb) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        mariadb_tables.load(self._server, name, rows)
        return replace(self._request(name), declared=tuple(rows.schema))

    def absent(self) -> SourceRequest:
        return self._request("none")

    def _request(self, name: str) -> SourceRequest:
        request = odbc_drivers.of_mariadb(self._server, name, odbc_dialect="mysql")
        login = request.params["odbc_connection_string"] + ";Description=hunter2"
        return replace(request, params={**request.params, "odbc_connection_string": login})


class Api:
    """An API that pages by offsets. Its values are JSON, so the manifest declares their types."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.answers[f"/{name}"] = api_server.pages(kept_as_json(rows))
        return self._request(name, tuple(rows.schema))

    def absent(self) -> SourceRequest:
        return self._request("none", ())

    def _request(self, path: str, declared: tuple[pa.Field, ...]) -> SourceRequest:
        params = {"pagination_offset_param": "offset", "http_auth_token": "hunter2"}
        address, folder = f"{self._server.address}/{path}", Path()
        return SourceRequest(
            TableName("t"), "http", address, params, declared, "read", folder, folder
        )


class FileServer:
    """A folder of Parquet files on an FTP or SFTP server."""

    def __init__(self, kind: str, served: ServedFolder) -> None:
        self._kind, self._served = kind, served

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        folder = self._served.folder / "tables" / name
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, folder / "part.parquet")
        return self._request(f"tables/{name}/")

    def absent(self) -> SourceRequest:
        return self._request("none/")

    def _request(self, path: str) -> SourceRequest:
        served = self._served
        params = served.ftp_login if self._kind == "ftp" else served.sftp_login
        cache = served.folder / "cache"
        return SourceRequest(
            TableName("t"), self._kind, f"{served.address}/{path}", params, (), "read", cache, cache
        )


class Dynamodb:
    """A table of DynamoDB, with a key beside the rows. The manifest declares the types."""

    def __init__(self, server: DynamodbServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.load(name, mariadb_tables.kept(rows))
        return self._server.request(name, *rows.schema, scan_segments="3")

    def absent(self) -> SourceRequest:
        return self._server.request("none")


class Mongodb:
    """A collection of MongoDB. The manifest declares the types."""

    def __init__(self, server: MongoServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.load(name, mariadb_tables.kept(rows))
        return self._server.request(name, *rows.schema)

    def absent(self) -> SourceRequest:
        return self._server.request("none")


class SearchIndex:
    """An index of three shards. The manifest declares the types."""

    def __init__(self, server: SearchServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        self._server.load(name, mariadb_tables.kept(rows), shards=3)
        return self._server.request(name, *rows.schema)

    def absent(self) -> SourceRequest:
        return self._server.request("none")


class Graphql:
    """A query whose answer has pages. Names of GraphQL are simpler than those of the suite."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def write(self, rows: pa.Table, name: str) -> SourceRequest:
        page = graphql_server.connection(kept_as_json(rows))

        def answer(request: ApiRequest) -> ApiAnswer:
            after = json.loads(request.body).get("variables", {}).get("after")
            return ApiAnswer({"data": {"rows": page(400, after)}})

        self._server.answers[f"/{name}"] = answer
        return self._request(name, tuple(rows.schema))

    def absent(self) -> SourceRequest:
        return self._request("none", ())

    def _request(self, path: str, declared: tuple[pa.Field, ...]) -> SourceRequest:
        query = """query($after: String) { rows(after: $after) {
            nodes { any } pageInfo { hasNextPage endCursor } } }"""
        params = {"graphql_query": query, "graphql_auth_token": "hunter2"}
        address, folder = f"{self._server.url}/{path}", Path()
        return SourceRequest(
            TableName("t"), "graphql", address, params, declared, "read", folder, folder
        )


def kept_as_json(rows: pa.Table) -> list[dict[str, Any]]:
    """Return rows as values of JSON."""
    return [
        {
            name: value
            if isinstance(value, bool | int | float | str | None)
            else filtering.written(value)
            for name, value in row.items()
        }
        for row in mariadb_tables.kept(rows).to_pylist()
    ]


SERVED: Mapping[str, Callable[[Any], Kind]] = {
    "adbc": Adbc,
    "clickhouse": Clickhouse,
    "dynamodb": Dynamodb,
    "elasticsearch": SearchIndex,
    "flightsql": FlightSql,
    "ftp": partial(FileServer, "ftp"),
    "graphql": Graphql,
    "http": Api,
    "mongodb": Mongodb,
    "mysql": Mysql,
    "odbc": Odbc,
    "opensearch": SearchIndex,
    "sftp": partial(FileServer, "sftp"),
    "snowflake": Snowflake,
    "spark": Spark,
}
"""The sources with a server of their own."""
FIXTURES = {
    "adbc": "flight_sql",
    "clickhouse": "clickhouse",
    "dynamodb": "dynamodb",
    "elasticsearch": "elasticsearch",
    "flightsql": "flight_sql",
    "ftp": "ftp",
    "graphql": "api",
    "http": "api",
    "mongodb": "mongodb",
    "mysql": "mariadb",
    "odbc": "mariadb",
    "opensearch": "opensearch",
    "sftp": "sftp",
    "snowflake": "fakesnow",
    "spark": "spark",
}
