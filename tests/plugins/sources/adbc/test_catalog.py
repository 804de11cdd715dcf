"""Catalogs over drivers of ADBC: which objects are tables, and what is refused."""

from pathlib import Path

import duckdb
import pytest

from caraway_core.errors import DatasetError
from caraway_core.protocols.catalog_sources import CatalogRequest
from caraway_plugins.sources.adbc.catalog import AdbcCatalog
from tests.kit import adbc_drivers, postgres, sqlite_files
from tests.kit.engine import rows, session


def request(folder: Path, path: str = "", **params: str) -> CatalogRequest:
    return CatalogRequest("c", "adbc", path, params, folder, folder)


def titles(asked: CatalogRequest) -> list[str]:
    return sorted(each.title for each in AdbcCatalog().tables(asked))


async def test_a_database_without_schemas(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    sqlite_files.run(
        file, 'CREATE TABLE "a""b ${x}" (i integer)', 'INSERT INTO "a""b ${x}" VALUES (7)',
        "CREATE VIEW v AS SELECT 1 AS one", "CREATE INDEX n ON \"a\"\"b ${x}\" (i)",
    )  # fmt: skip
    asked = request(tmp_path, adbc_driver="sqlite", adbc_uri=str(file))
    assert titles(asked) == ['main.a"b ${x}', "main.v"]
    found = next(each for each in AdbcCatalog().tables(asked) if each.name != "v")
    over = session({"c.main.t": AdbcCatalog().resolve(asked, found)})
    assert await rows(over, "SELECT i FROM c.main.t") == [{"i": 7}]
    with pytest.raises(DatasetError, match="no catalog 'main'"):
        titles(request(tmp_path, "main", adbc_driver="sqlite", adbc_uri=str(file)))


async def test_one_of_several_catalogs_is_named(tmp_path: Path) -> None:
    for name in ("one", "other"):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as connection:
            connection.execute(f"CREATE SCHEMA s; CREATE TABLE s.t AS SELECT '{name}' AS a")
    options = {"adbc_driver": "duckdb", "adbc_driver_options": f"path={tmp_path}/one.duckdb"}
    for path in ("", "one"):
        asked = request(tmp_path, path, **options)
        (found,) = AdbcCatalog().tables(asked)
        over = session({"c.s.t": AdbcCatalog().resolve(asked, found)})
        assert await rows(over, "SELECT a FROM c.s.t") == [{"a": "one"}]
    with pytest.raises(DatasetError, match="no catalog 'other'"):
        titles(request(tmp_path, "other", **options))


def test_only_tables_and_views_of_users_are_listed(tmp_path: Path) -> None:
    with postgres.serving() as server:
        server.execute(
            "CREATE SCHEMA s", "CREATE TABLE s.t (id serial PRIMARY KEY, v text)",
            "CREATE VIEW s.v AS SELECT 1 AS one", "CREATE TYPE s.y AS (a int)",
            "CREATE MATERIALIZED VIEW s.m AS SELECT 1 AS one", "CREATE DATABASE other",
            "CREATE TABLE p (i int) PARTITION BY RANGE (i)",
        )  # fmt: skip
        params = {"adbc_driver": "postgresql", "adbc_uri": adbc_drivers.postgres_uri(server)}
        listed = ["public.p", "s.m", "s.t", "s.v"]
        assert titles(request(tmp_path, **params)) == listed
        assert titles(request(tmp_path, "postgres", **params)) == listed
        assert titles(request(tmp_path, "other", **params)) == []


@pytest.mark.parametrize(
    ("params", "type_"),
    [
        ({"adbc_driver": "none", "adbc_uri": "x"}, "unsupported"),
        ({"adbc_uri": "x"}, "invalid"),
        ({"adbc_driver": "postgresql", "adbc_uri": "postgresql://u:hunter2@127.0.0.1:1/d"},
         "unavailable"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, params: dict[str, str], type_: str) -> None:
    with pytest.raises(DatasetError) as caught:
        titles(request(tmp_path, **params))
    assert caught.value.type == type_, caught.value.message
    assert "hunter2" not in caught.value.message


def test_a_login_that_is_refused(tmp_path: Path) -> None:
    with postgres.serving() as server:
        uri = adbc_drivers.postgres_uri(server, "nobody")
        with pytest.raises(DatasetError) as caught:
            titles(request(tmp_path, adbc_driver="postgresql", adbc_uri=uri))
    assert caught.value.type == "auth"
