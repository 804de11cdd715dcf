"""Changes of PostgreSQL tables: columns of all types, rights, and statements that are stopped."""

import threading

import pytest

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.ids import TableName
from caraway_core.protocols.remote import TableChange
from caraway_engine.sessions.sessions import Session
from caraway_plugins.sources.postgres.reader import PostgresReader
from caraway_plugins.sources.postgres.source import PostgresSource
from tests.kit import remote
from tests.kit.deadlines import until
from tests.kit.engine import rows, session
from tests.kit.postgres import Server


async def write(over: Session, sql: str) -> int:
    (found,) = await rows(over, sql, writable=frozenset({TableName("t")}))
    return int(found["count"])


async def test_constants_are_cast_by_the_columns_that_take_them(postgres: Server) -> None:
    postgres.execute(
        "CREATE TYPE written_mood AS ENUM ('ok', 'bad')",
        "CREATE TABLE cast_here (id int, u uuid, j jsonb, m written_mood, n numeric, b bytea, "
        "t time)",
        "INSERT INTO cast_here (id) VALUES (1)",
    )
    over = session({"t": remote.resolved(postgres, "cast_here")})
    uuid = "00000000-0000-0000-0000-00000000000a"
    sql = (
        f"UPDATE t SET u = '{uuid}', j = '{{\"a\": 1}}', m = 'bad', n = 0.10, b = X'00ff27', "
        "t = TIME '10:20:30.000001' WHERE id = 1"
    )
    assert await write(over, sql) == 1
    found = "SELECT u::text, j->>'a', m::text, n = 0.1, encode(b, 'hex'), t::text FROM cast_here"
    assert postgres.rows(found) == [(uuid, "1", "bad", True, "00ff27", "10:20:30.000001")]
    with pytest.raises(InvalidQueryError, match="no row was changed"):
        await write(over, "UPDATE t SET m = 'better'")
    with pytest.raises(InvalidQueryError, match="the new value of column 'm'"):
        await write(over, "UPDATE t SET m = u")


async def test_who_has_no_right_changes_nothing(postgres: Server) -> None:
    postgres.execute(
        "CREATE ROLE only_reads LOGIN",
        "CREATE TABLE owned (id int)",
        "INSERT INTO owned VALUES (1)",
        "GRANT SELECT ON owned TO only_reads",
    )
    table = PostgresSource().resolve(remote.request(postgres, "owned", pg_user="only_reads"))
    with pytest.raises(QueryError, match="permission denied for table owned; no row was deleted"):
        await write(session({"t": table}), "DELETE FROM t")
    assert postgres.rows("SELECT id FROM owned") == [(1,)]


def test_a_change_that_runs_is_stopped_at_the_server(postgres: Server) -> None:
    postgres.execute(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(600); RETURN OLD; END $$",
        "CREATE TABLE slow_rows (id int)",
        "INSERT INTO slow_rows VALUES (1)",
        "CREATE TRIGGER waits BEFORE DELETE ON slow_rows FOR EACH ROW EXECUTE FUNCTION slow()",
    )
    change = PostgresReader().change(remote.resolved(postgres, "slow_rows"), TableChange(""))
    failed: list[QueryError] = []

    def run() -> None:
        with pytest.raises(QueryError) as caught:
            change.write_rows()
        failed.append(caught.value)

    runs = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DELETE FROM%' AND state = 'active'"
    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: bool(postgres.rows(runs)), "the statement runs")
    change.close()
    thread.join(60)
    assert not thread.is_alive() and not postgres.rows(runs)
    assert "no row was deleted" in failed[0].message
    assert postgres.rows("SELECT id FROM slow_rows") == [(1,)]
