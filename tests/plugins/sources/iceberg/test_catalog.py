from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.iceberg import rest
from caraway_plugins.sources.iceberg.catalog import IcebergCatalog
from caraway_plugins.sources.iceberg.rest import CatalogPath
from caraway_plugins.sources.iceberg.source import IcebergSource
from tests.kit import iceberg_catalog
from tests.kit.engine import rows, session
from tests.kit.iceberg_catalog import CREDENTIAL, PREFIX, TOKEN, IcebergCatalogServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[IcebergCatalogServer]:
    with iceberg_catalog.serving(tmp_path) as made:
        made.run("CREATE TABLE main.a AS SELECT 1 AS x", "CREATE TABLE main.b AS SELECT 2 AS y")
        yield made


def request(server: IcebergCatalogServer, path: str = "", **params: str) -> SourceRequest:
    url = f"{server.url}/v1/namespaces/main/tables/a" if not path else f"{server.url}{path}"
    folder = server.folder
    given = params or {"iceberg_token": TOKEN}
    return SourceRequest(TableName("t"), "iceberg", url, given, (), "read", folder, folder)


def of_catalog(server: IcebergCatalogServer, path: str = "", *used: str) -> CatalogRequest:
    folder = server.folder
    params = {"iceberg_token": TOKEN}
    return CatalogRequest(
        "c", "iceberg", f"{server.url}{path}", params, folder, folder, frozenset(used)
    )


@pytest.mark.parametrize(
    "path",
    ["", "/v1/namespaces/main/tables/a", f"/v1/{PREFIX}/namespaces/main/tables/a"],
)
async def test_table_of_a_catalog(server: IcebergCatalogServer, path: str) -> None:
    table = IcebergSource().resolve(request(server, path))
    assert await rows(session({"t": table}), "SELECT * FROM t") == [{"x": 1}]


async def test_client_credentials_get_a_token(server: IcebergCatalogServer) -> None:
    asked = request(server, iceberg_oauth2_credential=CREDENTIAL)
    assert IcebergSource().resolve(asked).schema.names == ["x"]
    url = f"{server.url}/v1/oauth/tokens"
    asked = request(server, iceberg_oauth2_credential=CREDENTIAL, iceberg_oauth2_token_url=url)
    assert IcebergSource().resolve(asked).schema.names == ["x"]


@pytest.mark.parametrize(
    "params", [{"iceberg_token": "hunter3"}, {"iceberg_oauth2_credential": "reader:hunter3"}]
)
def test_wrong_credentials(server: IcebergCatalogServer, params: dict[str, str]) -> None:
    with pytest.raises(DatasetError) as caught:
        IcebergSource().resolve(request(server, **params))
    assert caught.value.type == "auth"
    assert "hunter3" not in caught.value.message


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("/v1/namespaces/main/tables/none", "not_found"),
        ("/v1/namespaces/none/tables/a", "not_found"),
        ("/v1/namespaces/main", "invalid"),
        ("/v1/namespaces/main/tables/a/b", "invalid"),
    ],
)
def test_what_a_catalog_does_not_have(server: IcebergCatalogServer, path: str, type_: str) -> None:
    with pytest.raises(DatasetError) as caught:
        IcebergSource().resolve(request(server, path))
    assert caught.value.type == type_


def test_credentials_of_a_catalog_are_renewed(server: IcebergCatalogServer) -> None:
    early, later = IcebergSource(lambda: 100.0), IcebergSource(lambda: 1_000.0)
    asked = request(server)
    assert early.fingerprint(asked) == later.fingerprint(asked)
    server.config = {"s3.access-key-id": "a", "s3.session-token": "hunter2"}
    assert early.fingerprint(asked) == early.fingerprint(asked) != later.fingerprint(asked)
    assert "hunter2" not in str(early.fingerprint(asked))


def test_catalog_that_is_away(server: IcebergCatalogServer) -> None:
    asked = SourceRequest(
        TableName("t"), "iceberg", "http://127.0.0.1:1/v1/namespaces/a/tables/b",
        {"iceberg_token": TOKEN}, (), "read", server.folder, server.folder,
    )  # fmt: skip
    with pytest.raises(DatasetError) as caught:
        IcebergSource().resolve(asked)
    assert caught.value.type == "unavailable"
    assert TOKEN not in caught.value.message


def test_only_tables_in_use_are_loaded_to_list_them(server: IcebergCatalogServer) -> None:
    found = list(IcebergCatalog().tables(of_catalog(server)))
    assert ListedTable("main", "a") in found and ListedTable("main", "b") in found
    assert server.loads == []
    marks = [list(IcebergCatalog().tables(of_catalog(server, "", "main.b"))) for _ in range(2)]
    assert set(server.loads) == {"b"}
    assert marks[0] == marks[1]
    server.run("INSERT INTO main.b VALUES (3)")
    assert list(IcebergCatalog().tables(of_catalog(server, "", "main.b"))) != marks[0]


def test_namespace_of_a_catalog(server: IcebergCatalogServer) -> None:
    server.run("CREATE SCHEMA other", "CREATE TABLE other.z (i int)")
    found = list(IcebergCatalog().tables(of_catalog(server, "/v1/namespaces/other")))
    assert found == [ListedTable("other", "z")]
    assert IcebergCatalog().resolve(of_catalog(server), found[0]).schema.names == ["i"]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://h", CatalogPath("https://h")),
        ("https://h/v1", CatalogPath("https://h")),
        ("https://h/x/v1/namespaces", CatalogPath("https://h/x")),
        ("https://h/v1/p/q/namespaces/a", CatalogPath("https://h", "p/q", ("a",))),
        ("https://h/v1/namespaces/a%1Fb/tables/t", CatalogPath("https://h", "", ("a", "b"), "t")),
        ("https://h/v1/namespaces/a.b/tables/t", CatalogPath("https://h", "", ("a", "b"), "t")),
        ("https://h/v1/namespaces/a/tables/t%2Fu", CatalogPath("https://h", "", ("a",), "t/u")),
    ],
)
def test_addresses(url: str, path: CatalogPath) -> None:
    assert rest.path_of(url) == path
    if path.table:
        assert rest.path_of(rest.url_of(path)) == path
