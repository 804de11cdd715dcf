"""Catalogs that are Flight SQL servers: which of their catalogs is meant, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest
from caraway_plugins.sources.flightsql.catalog import CarawayCatalog, FlightSqlCatalog
from tests.kit import caraway_tables, flight_sql_server
from tests.kit.engine import rows, session
from tests.kit.flight_sql_server import FlightSqlServer

ROOT = Path("/")


@pytest.fixture
def server() -> Iterator[FlightSqlServer]:
    with flight_sql_server.serving() as made:
        made.run("CREATE TABLE t AS SELECT 1 AS a")
        yield made


def request(server: FlightSqlServer, path: str = "", **params: str) -> CatalogRequest:
    given = {"flightsql_endpoint": server.uri, **flight_sql_server.LOGIN, **params}
    return CatalogRequest("c", "flightsql", path, given, ROOT, ROOT)


async def test_one_of_several_catalogs_is_named(server: FlightSqlServer) -> None:
    source = FlightSqlCatalog()
    assert [each.title for each in source.tables(request(server))] == ["main.t"]
    server.run("ATTACH ':memory:' AS \"other ${x}\"")
    assert [each.title for each in source.tables(request(server))] == ["main.t"]
    server.run('CREATE TABLE "other ${x}".main.t AS SELECT 2 AS a')
    with pytest.raises(DatasetError, match=r"several catalogs, such as 'memory' and 'other ") as e:
        list(source.tables(request(server)))
    assert e.value.type == "invalid"
    for name, value in (("memory", 1), ("other ${x}", 2)):
        (found,) = source.tables(request(server, name))
        over = session({"c.main.t": source.resolve(request(server, name), found)})
        assert await rows(over, "SELECT a FROM c.main.t") == [{"a": value}]


def test_what_is_wrong_is_said(server: FlightSqlServer) -> None:
    for wrong, type_ in (
        (request(server, "none"), "not_found"),
        (request(server, flightsql_password="hunter3"), "auth"),
        (request(server, flightsql_endpoint="grpc://127.0.0.1:1"), "unavailable"),
        (request(server, flightsql_endpoint="nowhere"), "invalid"),
        (request(server, flightsql_user="x"), "invalid"),
    ):
        with pytest.raises(DatasetError) as caught:
            list(FlightSqlCatalog().tables(wrong))
        assert caught.value.type == type_, caught.value.message
        assert "hunter" not in caught.value.message


def test_tables_of_the_runtime_itself_are_not_listed() -> None:
    with caraway_tables.runtime() as runtime:
        runtime.run("CREATE SCHEMA shop", "CREATE TABLE shop.t AS SELECT 1 AS a")
        params = {"caraway_endpoint": f"grpc://{runtime.address}", "caraway_api_key": "reader"}
        asked = CatalogRequest("c", "caraway", "", params, ROOT, ROOT)
        assert [each.title for each in CarawayCatalog().tables(asked)] == ["shop.t"]
        wrong = CatalogRequest("c", "caraway", "", params | {"caraway_api_key": "x"}, ROOT, ROOT)
        with pytest.raises(DatasetError) as caught:
            list(CarawayCatalog().tables(wrong))
        assert caught.value.type == "auth"
