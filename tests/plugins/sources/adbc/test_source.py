import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.adbc.reader import AdbcReader
from caraway_plugins.sources.adbc.source import AdbcSource
from tests.kit import adbc_drivers, duckdb_files, sqlite_files
from tests.kit.engine import rows, session
from tests.kit.postgres import Server, serving
from tests.kit.remote import watched


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with serving() as server:
        server.execute(
            "CREATE TYPE mood AS ENUM ('good', 'bad')",
            "CREATE TABLE kinds (id int, name text, padded char(5), price numeric(9, 2), "
            "feeling mood, note jsonb, moment timestamptz, tags int[], cost money)",
            "INSERT INTO kinds VALUES (1, 'a', 'a', 1.50, 'good', '{\"x\": 1}', "
            "'2024-02-29 12:00:00+02', '{1, 2}', 3)",
            "INSERT INTO kinds VALUES (2, 'it''s \\', 'b')",
            "CREATE TABLE endless (day date, at timestamp)",
            "INSERT INTO endless VALUES ('infinity', NULL)",
            "CREATE TABLE apart (i int)",
            "CREATE USER reader PASSWORD 'hunter2'",
        )
        yield server


def over(server: Server, name: str, **params: str) -> RemoteTable:
    return AdbcSource().resolve(adbc_drivers.of_postgres(server, name, **params))


async def test_types_of_postgres(postgres: Server) -> None:
    table = over(postgres, "kinds", adbc_dialect="postgresql")
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    assert types["id"] == pa.int32()
    assert types["price"] == types["note"] == types["feeling"] == pa.string()
    assert types["moment"] == pa.timestamp("us", "UTC")
    found = await rows(session({"t": table}), "SELECT * FROM t WHERE id = 1")
    assert found[0]["price"] == "1.50"
    assert found[0]["note"] == '{"x": 1}'
    assert found[0]["tags"] == [1, 2]
    assert "hunter2" not in repr(table)


@pytest.mark.parametrize("dialect", ["postgresql", "standard", "none"])
async def test_a_login_of_another_encoding_has_the_same_texts(
    postgres: Server, dialect: str
) -> None:
    postgres.execute(
        "CREATE ROLE abroad LOGIN SUPERUSER", "ALTER ROLE abroad SET client_encoding = 'LATIN1'",
        r"CREATE TABLE texts AS SELECT U&'\00fc' AS t",
    )  # fmt: skip
    try:
        uri = adbc_drivers.postgres_uri(postgres, "abroad")
        table = over(postgres, "texts", adbc_dialect=dialect, adbc_uri=uri)
        assert await rows(session({"t": table}), "SELECT t FROM t WHERE t = 'ü'") == [{"t": "ü"}]
    finally:
        postgres.execute("DROP TABLE texts", "DROP ROLE abroad")


@pytest.mark.parametrize(
    ("sql", "expected", "sent"),
    [
        ("SELECT id FROM t WHERE id > 1", [{"id": 2}], 'WHERE ("id" > (1)::int8)'),
        # A column of characters of a fixed length is compared without its blanks.
        ("SELECT id FROM t WHERE padded = 'a'", [], "WHERE (\"padded\" = 'a'::text)"),
        ("SELECT id FROM t WHERE name = 'it''s \\'", [{"id": 2}], "= 'it''s \\'::text)"),
        ("SELECT id FROM t WHERE feeling = 'none'", [], 'FROM "public"."kinds"'),
        ("SELECT id FROM t WHERE name > 'b'", [{"id": 2}], 'FROM "public"."kinds"'),
        ("SELECT sum(id) AS s FROM t", [{"s": 3}], "sum("),
        ("SELECT id FROM t WHERE cost = 300", [{"id": 1}], 'FROM "public"."kinds"'),
    ],
)
async def test_what_the_dialect_of_postgres_sends(
    postgres: Server, sql: str, expected: list[dict[str, object]], sent: str
) -> None:
    table = over(postgres, "public.kinds", adbc_dialect="postgresql")
    with watched("adbc/postgresql") as statements:
        assert await rows(session({"t": table}), sql) == expected
    assert sent in statements[-1], statements


async def test_without_a_dialect_only_columns_are_chosen(postgres: Server) -> None:
    table = over(postgres, "kinds")
    with watched("adbc/none") as sent:
        assert await rows(session({"t": table}), "SELECT name FROM t WHERE id = 1 LIMIT 1") == [
            {"name": "a"}
        ]
        assert await rows(session({"t": table}), "SELECT count(*) AS n FROM t") == [{"n": 2}]
    assert sent == ['SELECT "id", "name" FROM "kinds"', 'SELECT "id" FROM "kinds"']


async def test_infinite_days_are_an_error(postgres: Server) -> None:
    table = over(postgres, "endless")
    with pytest.raises(QueryError, match="is not a date32"):
        await rows(session({"t": table}), "SELECT day FROM t")


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("none", {}, "not_found"),
        ("none.none", {}, "not_found"),
        ("kinds", {"adbc_uri": "postgresql://nobody:hunter2@127.0.0.1:1/postgres"}, "unavailable"),
        ("kinds", {"adbc_driver": "nothing"}, "unsupported"),
        ("kinds", {"adbc_driver_path": "/nothing.so"}, "unsupported"),
        ("kinds", {"adbc_dialect": "oracle"}, "invalid"),
        ("kinds", {"adbc_driver_options": "hunter2"}, "invalid"),
        ("kinds", {"adbc_driver_options": "nothing=hunter2"}, "invalid"),
        ("kinds", {"adbc_schema": "none"}, "not_found"),
        ('kinds"', {}, "invalid"),
        ("x'; DROP TABLE kinds; --", {}, "not_found"),
    ],
)
def test_what_cannot_be_read_has_the_code_of_its_kind(
    postgres: Server, path: str, params: Mapping[str, str], type_: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        over(postgres, path, **params)
    assert caught.value.type == type_, caught.value.message
    assert "hunter" not in caught.value.message
    assert "/tmp" not in caught.value.message


def test_refused_logins_and_rights(postgres: Server) -> None:
    for user in ("nobody", "reader"):
        with pytest.raises(DatasetError) as caught:
            over(postgres, "kinds", adbc_uri=adbc_drivers.postgres_uri(postgres, user))
        assert caught.value.type == "auth", caught.value.message


async def test_server_that_was_restarted_is_asked_again() -> None:
    with serving() as server:
        server.execute("CREATE TABLE t AS SELECT 1 AS i")
        over_it = session({"t": over(server, "t", adbc_dialect="postgresql")})
        assert await rows(over_it, "SELECT i FROM t") == [{"i": 1}]
        server.kill()
        with pytest.raises(QueryError, match="the connection failed"):
            await rows(over_it, "SELECT i FROM t")
        server.start()
        assert await rows(over_it, "SELECT i FROM t") == [{"i": 1}]


async def test_server_that_dies_while_rows_flow(postgres: Server) -> None:
    table = over(postgres, "apart")
    slow = "SELECT generate_series(1, 10000000) AS i"
    found = iter(AdbcReader().read(table, slow, pa.schema([("i", pa.int32())])))
    next(found)
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%10000000%' "
        "AND pid <> pg_backend_pid()"
    )
    with pytest.raises(QueryError, match="adbc/none table 'apart' cannot be read"):
        list(found)


@pytest.mark.parametrize("is_waiting", [True, False])
def test_closing_ends_the_statement_at_the_server(postgres: Server, is_waiting: bool) -> None:
    endless = "SELECT generate_series(1, 2000000000) AS i"
    waiting = "SELECT 2000000000 AS i FROM pg_sleep(600)"
    schema = pa.schema([("i", pa.int32())])
    found = AdbcReader().read(over(postgres, "apart"), waiting if is_waiting else endless, schema)
    batches = iter(found)

    def read() -> None:
        with suppress(QueryError):
            list(batches)

    thread = threading.Thread(target=read, daemon=True)
    if is_waiting:
        thread.start()
        adbc_drivers.wait_until_running(postgres, "2000000000")
    else:
        next(batches)
    found.close()
    adbc_drivers.wait_until_idle(postgres, "2000000000")
    if is_waiting:
        thread.join(20)
        assert not thread.is_alive()


async def test_duckdb_by_its_name(tmp_path: Path) -> None:
    file = tmp_path / "x.duckdb"
    duckdb_files.run(
        file,
        "CREATE SCHEMA s",
        "CREATE TABLE s.t AS SELECT 1::UTINYINT AS a, DATE '2024-02-29' AS d, 1.5::DECIMAL(9, 2) "
        "AS p, {'x': 1} AS n, INTERVAL 1 MONTH AS i",
    )
    params = {"adbc_driver": "duckdb", "adbc_driver_options": f"path={file};access_mode=read_only"}
    table = AdbcSource().resolve(adbc_drivers.request("s.t", adbc_dialect="duckdb", **params))
    with watched("adbc/duckdb") as sent:
        found = await rows(session({"t": table}), "SELECT a, d, n FROM t WHERE a = 1 AND p < 2")
    assert found == [{"a": 1, "d": date(2024, 2, 29), "n": {"x": 1}}]
    assert 'WHERE (("a" = ' in sent[0] or 'WHERE ("a" = ' in sent[0]


@pytest.mark.parametrize("dialect", ["none", "sqlite"])
async def test_sqlite_has_the_types_of_its_first_rows(tmp_path: Path, dialect: str) -> None:
    file = tmp_path / "x.db"
    sqlite_files.run(
        file,
        "CREATE TABLE t (a INTEGER, b TEXT, c DOUBLE)",
        "INSERT INTO t VALUES (1, 'x', 1.5), (2, NULL, NULL)",
    )
    params = {"adbc_driver": "sqlite", "adbc_uri": str(file), "adbc_dialect": dialect}
    table = AdbcSource().resolve(adbc_drivers.request("t", **params))
    assert table.schema.types == [pa.int64(), pa.string(), pa.float64()]
    found = await rows(session({"t": table}), "SELECT * FROM t WHERE a > 1")
    assert found == [{"a": 2, "b": None, "c": None}]
