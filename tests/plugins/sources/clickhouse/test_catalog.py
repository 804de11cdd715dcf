"""Which tables of a server of ClickHouse a catalog has."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest
from caraway_plugins.sources.clickhouse.catalog import ClickhouseCatalog
from tests.kit import clickhouse_server
from tests.kit.clickhouse_server import ClickhouseServer

ODD = "it's; DROP"


@pytest.fixture(scope="module")
def server() -> Iterator[ClickhouseServer]:
    with clickhouse_server.serving() as made:
        made.run(f'CREATE DATABASE "{ODD}"')
        for database in ("default", ODD):
            made.run(f'CREATE TABLE "{database}".t (a Int64) ENGINE = MergeTree ORDER BY a')
        made.run(
            "CREATE MATERIALIZED VIEW default.sums ENGINE = MergeTree ORDER BY a "
            "AS SELECT a FROM default.t"
        )
        yield made


def request(server: ClickhouseServer, path: str = "", **params: str) -> CatalogRequest:
    given = {**server.request("").params, **params}
    return CatalogRequest("c", "clickhouse", path, given, Path("/"), Path("/"))


def titles(asked: CatalogRequest) -> set[tuple[str, str]]:
    return {(each.schema, each.name) for each in ClickhouseCatalog().tables(asked)}


def test_all_databases_but_those_of_the_server_are_schemas(server: ClickhouseServer) -> None:
    found = titles(request(server))
    # The rows of the materialized view are in a table that begins with `.inner`.
    assert found == {("default", "t"), ("default", "sums"), (ODD, "t")}


@pytest.mark.parametrize("database", ["default", ODD])
def test_one_database_may_be_named(server: ClickhouseServer, database: str) -> None:
    found = titles(request(server, clickhouse_db=database))
    assert {schema for schema, _ in found} == {database}


def test_a_database_of_the_connection_string_counts(server: ClickhouseServer) -> None:
    address = f"http://127.0.0.1:{server.port}/default"
    asked = request(server, clickhouse_connection_string=address, clickhouse_host="")
    assert {schema for schema, _ in titles(asked)} == {"default"}


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("default", {}, "invalid"),
        ("", {"clickhouse_host": ""}, "invalid"),
        ("", {"clickhouse_pass": "wrong"}, "auth"),
        ("", {"clickhouse_http_port": "1"}, "unavailable"),
        ("", {"clickhouse_db": "x' OR 1 = 1 --"}, "not_found"),
    ],
)
def test_what_cannot_be_listed_has_the_code_of_its_kind(
    server: ClickhouseServer, path: str, params: dict[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        titles(request(server, path, **params))
    assert caught.value.type == type_, caught.value.message
