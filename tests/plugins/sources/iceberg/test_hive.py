"""Iceberg tables of Hive metastores, as datasets and in catalogs."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.iceberg.catalog import IcebergCatalog
from caraway_plugins.sources.iceberg.hive_wire import (
    HiveConnection,
    Struct,
    UnknownMethodError,
)
from caraway_plugins.sources.iceberg.source import IcebergSource
from tests.kit import hive_server
from tests.kit.engine import rows, session
from tests.kit.hive_server import HiveServer
from tests.kit.iceberg_pointers import PointedTables

_WAIT_S = 60


@pytest.fixture(scope="module", params=["hive3", "hive4"])
def hive(request: pytest.FixtureRequest) -> Iterator[HiveServer]:
    with hive_server.serving(request.param) as server:
        yield server


def asked(folder: Path, path: str, **params: str) -> SourceRequest:
    return SourceRequest(TableName("d"), "iceberg", path, params, (), "read", folder, folder)


def of_catalog(folder: Path, path: str, **params: str) -> CatalogRequest:
    return CatalogRequest("c", "iceberg", path, params, folder, folder)


async def test_tables(tmp_path: Path, hive: HiveServer) -> None:
    hive.tables.clear()
    made = PointedTables(tmp_path, hive.catalog)
    made.run("CREATE SCHEMA g", "CREATE TABLE g.a AS SELECT 1 AS x", "CREATE SCHEMA h")
    hive.tables.put(("g", "csv"), {})
    hive.tables.put(("g", "v"), {"table_type": "ICEBERG-VIEW", "metadata_location": "file:///v"})
    dataset = asked(tmp_path, "hive://g/a", **hive.params)
    before = IcebergSource().fingerprint(dataset)
    over = session({"t": IcebergSource().resolve(dataset)})
    assert await rows(over, "SELECT * FROM t") == [{"x": 1}]
    for path in ("hive://", "hive://g"):
        found = list(IcebergCatalog().tables(of_catalog(tmp_path, path, **hive.params)))
        assert found == [ListedTable("g", "a")]
    assert list(IcebergCatalog().tables(of_catalog(tmp_path, "hive://h", **hive.params))) == []
    made.run("INSERT INTO g.a VALUES (2)")
    assert IcebergSource().fingerprint(dataset) != before


def test_many_tables_are_asked_for_in_parts(tmp_path: Path, hive: HiveServer) -> None:
    hive.tables.clear()
    hive.tables.create_namespace_if_not_exists("many")
    for number in range(7):
        parameters = {"table_type": "iceberg", "metadata_location": "file:///x"}
        hive.tables.put(("many", f"t{number}"), parameters)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("caraway_plugins.sources.iceberg.hive._TOGETHER", 3)
        found = IcebergCatalog().tables(of_catalog(tmp_path, "hive://many", **hive.params))
        assert sorted(each.name for each in found) == [f"t{number}" for number in range(7)]


@pytest.mark.parametrize(
    ("path", "type_", "words"),
    [
        ("hive://g/none", "not_found", "table 'g.none' does not exist"),
        ("hive://none/a", "not_found", "does not exist"),
        ("hive://g/csv", "invalid", "is not an Iceberg table"),
        ("hive://g", "invalid", "names no table"),
    ],
)
def test_names_that_a_metastore_does_not_have(
    tmp_path: Path, hive: HiveServer, path: str, type_: str, words: str
) -> None:
    hive.tables.clear()
    hive.tables.create_namespace_if_not_exists("g")
    hive.tables.put(("g", "csv"), {})
    with pytest.raises(DatasetError, match=words) as caught:
        IcebergSource().resolve(asked(tmp_path, path, **hive.params))
    assert caught.value.type == type_


def test_older_servers_are_asked_by_older_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = HiveConnection.call

    def known(self: HiveConnection, method: str, *arguments: Any) -> Struct:
        """Versions before 3 have no requests; 3 has both."""
        return call(self, f"{method}_of_tomorrow" if "_req" in method else method, *arguments)

    with hive_server.serving("hive3") as old:
        made = PointedTables(tmp_path, old.catalog)
        made.run("CREATE SCHEMA g", "CREATE TABLE g.a AS SELECT 1 AS x")
        monkeypatch.setattr(HiveConnection, "call", known)
        dataset = asked(tmp_path, "hive://g/a", **old.params)
        assert IcebergSource().resolve(dataset).schema.names == ["x"]
        found = IcebergCatalog().tables(of_catalog(tmp_path, "hive://", **old.params))
        assert list(found) == [ListedTable("g", "a")]


def test_unknown_methods_are_told_from_failures(hive: HiveServer) -> None:
    with pytest.raises(UnknownMethodError):
        hive.tables.connection.call("of_tomorrow")
    assert "default" in hive.tables.connection.call("get_all_databases")[0]


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Serve one connection: read a request, answer with some bytes, and end it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1_000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"thrift://127.0.0.1:{server.getsockname()[1]}"
        thread.join(_WAIT_S)


HEAD = b"\x80\x01\x00\x02\0\0\0\x01m\0\0\0\x01"


@pytest.mark.parametrize(
    ("answer", "type_", "words"),
    [
        (b"", "unavailable", "may ask for TLS or a login"),
        (HEAD[:9], "unavailable", "may ask for TLS or a login"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n" + b" " * 100, "invalid", "not that of a Hive"),
        (HEAD + b"\x0b\0\0\x7f\xff\xff\xff", "invalid", "not that of a Hive"),
        (HEAD + b"\x0b\0\0\xff\xff\xff\xff", "invalid", "not that of a Hive"),
        (HEAD + b"\x63\0\0", "invalid", "not that of a Hive"),
        (HEAD + b"\x0c\0\0" * 50, "invalid", "not that of a Hive"),
        (HEAD + b"\x0d\0\0\x0c\x0b\0\0\0\x01\0\0\0\0\0", "invalid", "not that of a Hive"),
        (HEAD + b"\0", "unavailable", "the metastore failed"),
        (HEAD + b"\x0c\0\x01\0\0", "unavailable", "the metastore failed"),
    ],
)
def test_answers_of_other_servers(tmp_path: Path, answer: bytes, type_: str, words: str) -> None:
    with answering(answer) as address, pytest.raises(DatasetError, match=words) as caught:
        params = {"iceberg_hive_endpoint": address, "client_timeout": "20s"}
        IcebergSource().resolve(asked(tmp_path, "hive://g/a", **params))
    assert caught.value.type == type_


@pytest.mark.parametrize(
    ("endpoint", "type_"),
    [
        ("thrift://127.0.0.1:1", "unavailable"),
        ("", "invalid"),
        ("thrift://", "invalid"),
        ("http://127.0.0.1:9083", "invalid"),
        ("thrift://127.0.0.1:many", "invalid"),
    ],
)
def test_addresses(tmp_path: Path, endpoint: str, type_: str) -> None:
    with pytest.raises(DatasetError, match="iceberg_hive_endpoint") as caught:
        params = {"iceberg_hive_endpoint": endpoint, "client_timeout": "2s"}
        list(IcebergCatalog().tables(of_catalog(tmp_path, "hive://", **params)))
    assert caught.value.type == type_


def test_server_that_is_silent(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"thrift://127.0.0.1:{server.getsockname()[1]}"
        params = {"iceberg_hive_endpoint": address, "client_timeout": "100ms"}
        with pytest.raises(DatasetError, match="TimeoutError") as caught:
            IcebergSource().resolve(asked(tmp_path, "hive://g/a", **params))
    assert caught.value.type == "unavailable"


def test_all_kinds_of_values() -> None:
    """A structure with each type of Thrift, as a metastore may answer."""
    fields = {
        1: b"\x02\0\x01\x01", 2: b"\x03\0\x02\xff", 3: b"\x04\0\x03" + b"\0" * 8,
        4: b"\x06\0\x04\0\x05", 5: b"\x0a\0\x05" + b"\xff" * 8,
        6: b"\x0e\0\x06\x08\0\0\0\x01\0\0\0\x07",
        7: b"\x0d\0\x07\x0b\x08\0\0\0\x01\0\0\0\x01k\0\0\0\x02",
    }  # fmt: skip
    with answering(HEAD + b"".join(fields.values()) + b"\0") as address:
        connection = HiveConnection("127.0.0.1", int(address.rpartition(":")[2]), _WAIT_S)
        found = connection.call("m")
        connection.close()
    assert found == {1: True, 2: -1, 3: 0.0, 4: 5, 5: -1, 6: [7], 7: {"k": 2}}
