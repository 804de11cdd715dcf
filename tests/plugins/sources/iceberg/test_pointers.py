"""Tables of catalogs in SQL databases and in Glue, as datasets and in catalogs."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest, ListedTable
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.iceberg import pointers
from caraway_plugins.sources.iceberg.catalog import IcebergCatalog
from caraway_plugins.sources.iceberg.pointers import PointerPath
from caraway_plugins.sources.iceberg.source import IcebergSource
from tests.kit import glue_server, postgres
from tests.kit.engine import rows, session
from tests.kit.glue_server import GlueServer
from tests.kit.iceberg_pointers import PointedTables

ROWS = pa.table({"x": [1, 2]})


@pytest.fixture
def tables(tmp_path: Path) -> PointedTables:
    made = PointedTables(tmp_path, SqlCatalog("p", uri=f"sqlite:///{tmp_path}/p.db"))
    made.run("CREATE SCHEMA s", "CREATE TABLE s.a AS SELECT 1 AS x", "CREATE TABLE s.b (y int)")
    return made


@pytest.fixture(scope="module")
def glue() -> Iterator[GlueServer]:
    with glue_server.serving() as server:
        yield server


def request(folder: Path, path: str = "sqlite://s/a", **params: str) -> SourceRequest:
    given = params or {"sqlite_file": "p.db"}
    return SourceRequest(TableName("d"), "iceberg", path, given, (), "read", folder, folder)


def of_catalog(folder: Path, path: str = "sqlite://", *used: str, **params: str) -> CatalogRequest:
    given = params or {"sqlite_file": "p.db"}
    return CatalogRequest("c", "iceberg", path, given, folder, folder, frozenset(used))


def failed(asked: SourceRequest | CatalogRequest, *words: str) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        if isinstance(asked, CatalogRequest):
            list(IcebergCatalog().tables(asked))
        else:
            IcebergSource().resolve(asked)
    for each in words:
        assert each in caught.value.message, caught.value.message
    assert "hunter2" not in caught.value.message
    return caught.value


async def test_a_table_of_a_catalog_is_a_dataset(tmp_path: Path, tables: PointedTables) -> None:
    asked = request(tmp_path)
    first = IcebergSource().fingerprint(asked)
    over = session({"t": IcebergSource().resolve(asked)})
    assert await rows(over, "SELECT * FROM t") == [{"x": 1}]
    tables.run("INSERT INTO s.a VALUES (5)")
    assert IcebergSource().fingerprint(asked) != first
    over = session({"t": IcebergSource().resolve(asked)})
    assert await rows(over, "SELECT sum(x) AS n FROM t") == [{"n": 6}]


def test_only_tables_in_use_have_marks(tmp_path: Path, tables: PointedTables) -> None:
    found = list(IcebergCatalog().tables(of_catalog(tmp_path, "sqlite://", "s.b")))
    assert [each.title for each in found] == ["s.a", "s.b"]
    assert [bool(each.mark) for each in found] == [False, True]


def test_a_namespace_and_those_below_it(tmp_path: Path) -> None:
    made = SqlCatalog("p", uri=f"sqlite:///{tmp_path}/p.db", warehouse=tmp_path.as_uri())
    for each in ("a", "a.b", "a.b.c", "ab", "empty"):
        made.create_namespace(each)
        if each != "empty":
            made.create_table(f"{each}.t", ROWS.schema)
    for path, expected in (
        ("sqlite://a", ["a.t", "b.t", "b.c.t"]),
        ("sqlite://a.b", ["b.t", "c.t"]),
        ("sqlite://empty", []),
        ("sqlite://", ["a.t", "a.b.t", "a.b.c.t", "ab.t"]),
    ):
        asked = of_catalog(tmp_path, path)
        found = list(IcebergCatalog().tables(asked))
        assert [each.title for each in found] == expected
        for listed in found:
            assert IcebergCatalog().resolve(asked, listed).schema.names == ["x"]
    assert failed(of_catalog(tmp_path, "sqlite://none"), "no namespace 'none'").type == "not_found"


def test_several_catalogs_in_a_database(tmp_path: Path, tables: PointedTables) -> None:
    other = SqlCatalog("q", uri=f"sqlite:///{tmp_path}/p.db", warehouse=tmp_path.as_uri())
    other.create_namespace("s")
    other.create_table("s.a", pa.schema({"z": pa.int64()}))
    words = ["2 catalogs ('p', 'q')", "iceberg_catalog_name"]
    assert failed(of_catalog(tmp_path), *words).type == "invalid"
    assert failed(request(tmp_path), *words).type == "invalid"
    for name, column in (("p", "x"), ("q", "z")):
        params = {"sqlite_file": "p.db", "iceberg_catalog_name": name}
        assert IcebergSource().resolve(request(tmp_path, **params)).schema.names == [column]
    params = {"sqlite_file": "p.db", "iceberg_catalog_name": "q"}
    found = list(IcebergCatalog().tables(of_catalog(tmp_path, "sqlite://", **params)))
    assert [each.title for each in found] == ["s.a"]


def test_views_are_left_out(tmp_path: Path, tables: PointedTables) -> None:
    with closing(sqlite3.connect(tmp_path / "p.db")) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(iceberg_tables)")}
        if "iceberg_type" not in columns:
            connection.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type TEXT")
        connection.execute(
            "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
            "metadata_location, iceberg_type) VALUES ('p', 's', 'v', 'file:///v', 'VIEW')"
        )
        connection.commit()
    found = list(IcebergCatalog().tables(of_catalog(tmp_path)))
    assert [each.name for each in found] == ["a", "b"]
    assert failed(request(tmp_path, "sqlite://s/v"), "no table 's.v'").type == "not_found"


@pytest.mark.parametrize(
    ("path", "type_", "words"),
    [
        ("sqlite://s/none", "not_found", "no table 's.none'"),
        ("sqlite://s/x' OR '1'='1", "not_found", "has no table"),
        ("sqlite://s", "invalid", "names no table"),
        ("sqlite://s/a/b", "invalid", "sqlite://NAMESPACE/TABLE"),
    ],
)
def test_names_that_a_catalog_does_not_have(
    tmp_path: Path, tables: PointedTables, path: str, type_: str, words: str
) -> None:
    assert failed(request(tmp_path, path), words).type == type_


def test_files_that_are_no_catalog(tmp_path: Path, tables: PointedTables) -> None:
    (tmp_path / "text.db").write_text("no database" * 500)
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE t (i int)")
    for file, type_, words in (
        ("none.db", "not_found", "does not exist"),
        ("text.db", "invalid", "is not a SQLite database"),
        ("empty.db", "not_found", "no table iceberg_tables"),
    ):
        error = failed(request(tmp_path, sqlite_file=file), words)
        assert error.type == type_
        assert str(tmp_path) not in error.message
    assert failed(of_catalog(tmp_path, "sqlite://s/a"), "names the table 'a'").type == "invalid"
    assert failed(of_catalog(tmp_path, "nessie://"), "iceberg:glue://").type == "invalid"


def test_metadata_that_are_gone_or_cut(tmp_path: Path, tables: PointedTables) -> None:
    (file,) = (tmp_path / "t1" / "metadata").glob("00001-*.json")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert failed(request(tmp_path), "is cut or damaged").type == "invalid"
    file.unlink()
    error = failed(request(tmp_path), file.name, "is gone")
    assert (error.type, str(tmp_path) in error.message) == ("not_found", False)
    # Only statements that name the table get the error.
    assert len(list(IcebergCatalog().tables(of_catalog(tmp_path, "sqlite://", "s.a")))) == 2


def test_a_server_that_is_away_and_a_user_who_may_not(tmp_path: Path) -> None:
    params = {"pg_host": "127.0.0.1", "pg_port": "1", "pg_pass": "hunter2"}
    assert failed(request(tmp_path, "postgres://s/a", **params)).type == "unavailable"
    assert failed(of_catalog(tmp_path, "postgres://", **params)).type == "unavailable"
    with postgres.serving() as server:
        params = {**server.params, "pg_user": "nobody", "pg_pass": "hunter2"}
        assert failed(of_catalog(tmp_path, "postgres://", **params)).type == "auth"
        params = {**server.params, "pg_pass": "hunter2"}
        error = failed(of_catalog(tmp_path, "postgres://", **params), "iceberg_tables")
        assert error.type == "not_found"


def test_tables_of_glue(tmp_path: Path, glue: GlueServer) -> None:
    made = PointedTables(tmp_path, glue.catalog)
    made.run("CREATE SCHEMA g", "CREATE TABLE g.a AS SELECT 1 AS x")
    glue.client.create_table(DatabaseName="g", TableInput={"Name": "csv", "Parameters": {}})
    asked = request(tmp_path, "glue://g/a", **glue.params)
    assert IcebergSource().resolve(asked).schema.names == ["x"]
    found = list(IcebergCatalog().tables(of_catalog(tmp_path, "glue://g", **glue.params)))
    assert found == [ListedTable("g", "a")]
    for path, type_, words in (
        ("glue://g/none", "not_found", "table 'g.none' does not exist"),
        ("glue://none/a", "not_found", "does not exist"),
        ("glue://g/csv", "invalid", "is not an Iceberg table"),
    ):
        assert failed(request(tmp_path, path, **glue.params), words).type == type_


def test_keys_of_buckets_are_those_of_glue(tmp_path: Path, glue: GlueServer) -> None:
    made = PointedTables(tmp_path, glue.catalog)
    made.run("CREATE SCHEMA k", "CREATE TABLE k.a AS SELECT 1 AS x")
    params = {
        "iceberg_glue_endpoint": glue.endpoint, "iceberg_s3_region": "eu-central-1",
        "iceberg_s3_access_key_id": "AKIA", "iceberg_s3_secret_access_key": "hunter2",
    }  # fmt: skip
    asked = request(tmp_path, "glue://k/a", **params)
    assert IcebergSource().resolve(asked).schema.names == ["x"]


def test_glue_that_is_away_or_has_no_login(
    tmp_path: Path, glue: GlueServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = {**glue.params, "iceberg_glue_endpoint": "http://127.0.0.1:1", "client_timeout": "1s"}
    monkeypatch.setattr("caraway_plugins.sources.iceberg.glue._ATTEMPTS", 1)
    assert failed(request(tmp_path, "glue://g/a", **away)).type == "unavailable"
    half = {key: value for key, value in glue.params.items() if "secret" not in key}
    assert failed(request(tmp_path, "glue://g/a", **half), "set both").type == "invalid"
    nowhere = {**glue.params, "iceberg_glue_endpoint": "not an address"}
    assert failed(request(tmp_path, "glue://g/a", **nowhere), "addressed").type == "invalid"


@pytest.mark.parametrize("code", ["AccessDeniedException", "UnrecognizedClientException"])
def test_glue_that_refuses_the_login(
    tmp_path: Path, glue: GlueServer, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    def refused(self: BaseClient, operation: str, _request: object) -> object:
        error = {"Error": {"Code": code, "Message": "the key AKIA of hunter2"}}
        raise ClientError(error, operation)  # type: ignore[arg-type]

    monkeypatch.setattr(BaseClient, "_make_api_call", refused)
    assert failed(request(tmp_path, "glue://g/a", **glue.params), code).type == "auth"
    assert failed(of_catalog(tmp_path, "glue://", **glue.params), code).type == "auth"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("glue://", PointerPath("glue")),
        ("postgres://a.b", PointerPath("postgres", ("a", "b"))),
        ("sqlite://a.b/t", PointerPath("sqlite", ("a", "b"), "t")),
        ("sqlite://of%20all/t%2Fu", PointerPath("sqlite", ("of all",), "t/u")),
        ("s3://bucket/key", None),
        ("folder/t", None),
    ],
)
def test_paths(text: str, path: PointerPath | None) -> None:
    assert pointers.path_of(text) == path
    assert path is None or pointers.path_of(path.text) == path
