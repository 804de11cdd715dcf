"""Settings of databases and of logins change no answer."""

from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest

from caraway_core.tables import MemoryTable, TableSpec
from caraway_plugins.sources.postgres.source import PostgresSource
from tests.conformance.source_kinds import ROWS, STATEMENTS
from tests.kit import remote
from tests.kit.engine import rows, session
from tests.kit.postgres import Server

SETTINGS = {
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "datestyle": "SQL, DMY",
    "default_transaction_isolation": "serializable",
    "extra_float_digits": "-15",
    "intervalstyle": "sql_standard",
    "search_path": "elsewhere",
    "standard_conforming_strings": "off",
    "statement_timeout": "1ms",
    "timezone": "Asia/Tokyo",
    "transform_null_equals": "on",
}
ODD = r"SELECT id FROM t WHERE name <> 'a\' OR name = '\'' --'"


@pytest.fixture(scope="module", autouse=True)
def abroad(postgres: Server) -> Iterator[None]:
    """A login with settings of its own, and a table."""
    postgres.execute(
        "CREATE ROLE abroad LOGIN SUPERUSER",
        *(f"ALTER ROLE abroad SET {name} = '{value}'" for name, value in SETTINGS.items()),
    )
    remote.load(postgres, "abroad", ROWS)
    yield
    postgres.execute("DROP TABLE abroad", "DROP ROLE abroad")


def read_abroad(postgres: Server, name: str) -> TableSpec:
    return PostgresSource().resolve(remote.request(postgres, name, pg_user="abroad"))


@pytest.mark.parametrize("sql", [*STATEMENTS, ODD])
async def test_a_login_with_settings_has_the_same_answers(postgres: Server, sql: str) -> None:
    found = await rows(session({"t": read_abroad(postgres, "abroad")}), sql)
    expected = await rows(session({"t": MemoryTable(ROWS.schema, ROWS)}), sql)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


async def test_values_that_settings_spell_are_the_same(postgres: Server) -> None:
    postgres.execute(
        r"CREATE TABLE spelled AS SELECT 'ü\' AS s, '\x00ff'::bytea AS x, 0.1::float8 AS f, "
        "0.1::float4 AS g, interval '1 day 2 hours' AS p, timestamptz '2024-02-29 00:30Z' AS z, "
        "'ń'::varchar AS v, 1.5::numeric AS n, time '01:02' AS o, date '2024-02-03' AS d, "
        "ARRAY['ń', 'ü'] AS l, '{\"k\": \"ń\"}'::jsonb AS j"
    )
    plain = PostgresSource().resolve(remote.request(postgres, "spelled"))
    over = session({"t": read_abroad(postgres, "spelled"), "u": plain})
    (found,) = await rows(over, "SELECT * FROM t")
    assert [found] == await rows(over, "SELECT * FROM u")
    assert (found["s"], found["x"], found["f"]) == ("ü\\", b"\x00\xff", 0.1)
    assert (found["p"], found["v"], found["l"]) == ("1 day 02:00:00", "ń", ["ń", "ü"])
    postgres.execute("DROP TABLE spelled")


@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "EUC_JP"])
async def test_a_database_of_another_encoding(postgres: Server, encoding: str) -> None:
    postgres.execute(
        f"CREATE DATABASE kept ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    text = "日本" if encoding == "EUC_JP" else "Größe §"
    request = remote.request(postgres, "t", pg_db="kept")
    try:
        place = f"host={postgres.params['pg_host']} user=postgres dbname=kept"
        with closing(psycopg2.connect(f"{place} client_encoding=UTF8")) as made:
            with made, made.cursor() as cursor:
                cursor.execute(f"CREATE TABLE t AS SELECT 1 AS id, '{text}'::text AS \"{text}\"")
        over = session({"t": PostgresSource().resolve(request)})
        assert await rows(over, "SELECT * FROM t") == [{"id": 1, text: text}]
        for sql in (
            f"SELECT id FROM t WHERE \"{text}\" = '{text}'",
            f"SELECT id FROM t GROUP BY id HAVING max(\"{text}\") = '{text}'",
        ):
            assert await rows(over, sql) == [{"id": 1}]
    finally:
        postgres.execute("DROP DATABASE kept WITH (FORCE)")
