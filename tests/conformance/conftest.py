"""Servers for the sources that need one."""

from collections.abc import Iterator

import pytest

from tests.kit import (
    api_server,
    clickhouse_server,
    dynamodb_server,
    fakesnow_server,
    file_servers,
    flight_sql_server,
    mongo_server,
    search_server,
    spark_server,
)
from tests.kit import mariadb as mariadb_tables
from tests.kit.api_server import ApiServer
from tests.kit.clickhouse_server import ClickhouseServer
from tests.kit.dynamodb_server import DynamodbServer
from tests.kit.fakesnow_server import FakesnowServer
from tests.kit.file_servers import ServedFolder
from tests.kit.flight_sql_server import FlightSqlServer
from tests.kit.mariadb import Mariadb
from tests.kit.mongo_server import MongoServer
from tests.kit.postgres import Server, serving
from tests.kit.search_server import SearchServer
from tests.kit.spark_server import SparkServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Mariadb]:
    with mariadb_tables.serving() as server:
        yield server


@pytest.fixture(scope="session")
def flight_sql() -> Iterator[FlightSqlServer]:
    with flight_sql_server.serving() as server:
        yield server


@pytest.fixture(scope="session")
def api() -> Iterator[ApiServer]:
    with api_server.running() as server:
        yield server


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickhouseServer]:
    with clickhouse_server.serving() as server:
        yield server


@pytest.fixture(scope="session")
def fakesnow() -> Iterator[FakesnowServer]:
    with fakesnow_server.serving() as server:
        yield server


@pytest.fixture(scope="session")
def ftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    with file_servers.ftp(tmp_path_factory.mktemp("ftp")) as served:
        yield served


@pytest.fixture(scope="session")
def sftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    with file_servers.sftp(tmp_path_factory.mktemp("sftp")) as served:
        yield served


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[DynamodbServer]:
    with dynamodb_server.serving() as server:
        yield server


@pytest.fixture(scope="session")
def mongodb() -> Iterator[MongoServer]:
    with mongo_server.serving() as server:
        yield server


@pytest.fixture(scope="session")
def opensearch() -> Iterator[SearchServer]:
    with search_server.serving("opensearch") as server:
        yield server


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[SearchServer]:
    with search_server.serving("elasticsearch") as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkServer]:
    with spark_server.serving() as server:
        yield server
