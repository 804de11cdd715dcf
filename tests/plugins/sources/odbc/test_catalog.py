"""Catalogs over drivers of ODBC: which tables are listed, and what is refused."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest
from caraway_plugins.sources.odbc.catalog import OdbcCatalog
from tests.kit import odbc_drivers, postgres, sqlite_files
from tests.kit.engine import rows, session


def request(folder: Path, params: Mapping[str, str], path: str = "") -> CatalogRequest:
    return CatalogRequest("c", "odbc", path, params, folder, folder)


def titles(asked: CatalogRequest) -> list[str]:
    return sorted(each.title for each in OdbcCatalog().tables(asked))


async def test_tables_of_a_file_of_sqlite(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    sqlite_files.run(
        file, 'CREATE TABLE "a""b" (i integer PRIMARY KEY AUTOINCREMENT)',
        'INSERT INTO "a""b" VALUES (7)', "CREATE VIEW v AS SELECT 1 AS one",
    )  # fmt: skip
    asked = request(tmp_path, odbc_drivers.of_sqlite(file, "t", odbc_dialect="sqlite").params)
    assert titles(asked) == ['main.a"b', "main.v"]
    found = next(each for each in OdbcCatalog().tables(asked) if each.name != "v")
    over = session({"c.main.t": OdbcCatalog().resolve(asked, found)})
    assert await rows(over, "SELECT i FROM c.main.t") == [{"i": 7}]
    with pytest.raises(DatasetError, match="no catalog 'main'"):
        titles(request(tmp_path, asked.params, "main"))
    # Without its dialect, the list is looked for as in other databases.
    with pytest.raises(DatasetError, match="no list of tables") as caught:
        titles(request(tmp_path, odbc_drivers.of_sqlite(file, "t").params))
    assert caught.value.type == "not_found"


def test_tables_of_postgresql(tmp_path: Path) -> None:
    with postgres.serving() as server:
        server.execute("CREATE SCHEMA s", "CREATE TABLE s.t (id serial PRIMARY KEY)",
                       "CREATE VIEW s.v AS SELECT 1 AS one")  # fmt: skip
        params = odbc_drivers.of_postgres(server, "t", odbc_dialect="postgresql").params
        assert titles(request(tmp_path, params)) == ["s.t", "s.v"]
        wrong = {"odbc_connection_string": params["odbc_connection_string"].replace(
            "Uid=postgres", "Uid=nobody"), "odbc_password": "hunter2"}  # fmt: skip
        with pytest.raises(DatasetError) as caught:
            titles(request(tmp_path, wrong))
    assert caught.value.type == "auth"
    assert "hunter2" not in caught.value.message
    with pytest.raises(DatasetError) as caught:
        titles(request(tmp_path, params))
    assert caught.value.type == "unavailable"


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    for params, type_ in (
        ({}, "invalid"),
        ({"odbc_connection_string": "Driver={none}", "odbc_dialect": "oracle"}, "invalid"),
        ({"odbc_connection_string": "Driver={none}"}, "unsupported"),
    ):
        with pytest.raises(DatasetError) as caught:
            titles(request(tmp_path, params))
        assert caught.value.type == type_, caught.value.message
