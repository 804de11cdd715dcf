"""The error of a write that fails at COMMIT, or without transactions, says which rows stay."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.protocols.remote import RemoteInsert
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.mysql import connecting
from caraway_plugins.sources.mysql.reader import MysqlReader
from caraway_plugins.sources.postgres.reader import PostgresReader
from tests.kit import mariadb, postgres, remote
from tests.kit.deadlines import until
from tests.kit.mariadb import Mariadb
from tests.kit.postgres import Server

_WAITS_AT_COMMIT = (
    "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$",
    "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT OR UPDATE ON t DEFERRABLE INITIALLY DEFERRED "
    "FOR EACH ROW EXECUTE FUNCTION waits()",
)
_AT_COMMIT = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query ILIKE 'commit%'"
_OPEN = "the connection failed while the rows were committed; look whether they are "


def numbers(*values: int) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"id": pa.array(values, pa.int64())})


def columns(table: RemoteTable) -> pa.Schema:
    return pa.schema([table.schema.field("id")])


@contextmanager
def in_thread(insert: RemoteInsert, failed: list[BaseException]) -> Iterator[None]:
    """Run an INSERT in another thread; its error is in the list afterwards."""

    def run() -> None:
        try:
            insert.insert_rows(numbers(1, 2))
        except QueryError as exc:
            failed.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def waiting() -> Iterator[Server]:
    """A server whose transactions wait while they are committed."""
    with postgres.serving() as server:
        server.execute("CREATE TABLE t (id bigint PRIMARY KEY)", *_WAITS_AT_COMMIT)
        yield server


@pytest.mark.parametrize("how", ["killed", "terminated"])
def test_postgres_that_is_lost_at_the_commit_leaves_the_rows_open(
    waiting: Server, how: str
) -> None:
    table = remote.resolved(waiting, "t")
    failed: list[BaseException] = []
    with in_thread(PostgresReader().insert(table, columns(table)), failed):
        until(lambda: bool(waiting.rows(_AT_COMMIT)), "the transaction is being committed")
        if how == "killed":
            waiting.kill()
        else:
            waiting.execute(_AT_COMMIT.replace("1", "pg_terminate_backend(pid)", 1))
    (error,) = failed
    assert isinstance(error, ExecutionError)
    assert f"{_OPEN}inserted before you run it again" in error.message
    assert "no row" not in error.message


def test_postgres_that_refuses_the_commit_has_no_rows(waiting: Server) -> None:
    waiting.execute("ALTER TABLE t DISABLE TRIGGER at_commit",
                    "CREATE TABLE other (id bigint PRIMARY KEY)",
                    "ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES other "
                    "DEFERRABLE INITIALLY DEFERRED")  # fmt: skip
    table = remote.resolved(waiting, "t")
    with pytest.raises(QueryError, match=r"foreign key .*; no row was inserted"):
        PostgresReader().insert(table, columns(table)).insert_rows(numbers(1))
    assert not waiting.rows("SELECT 1 FROM t")


def test_an_insert_that_is_stopped_at_its_commit_ends_at_the_server(waiting: Server) -> None:
    table = remote.resolved(waiting, "t")
    insert = PostgresReader().insert(table, columns(table))
    failed: list[BaseException] = []
    with in_thread(insert, failed):
        until(lambda: bool(waiting.rows(_AT_COMMIT)), "the transaction is being committed")
        insert.close()
    assert "no row was inserted" in str(failed[0])
    assert not waiting.rows("SELECT 1 FROM t")


@pytest.fixture(scope="module")
def server() -> Iterator[Mariadb]:
    with mariadb.serving(in_memory=True) as made:
        yield made


def test_mysql_that_is_lost_at_the_commit_leaves_the_rows_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with mariadb.serving(in_memory=True) as dying:
        dying.execute("CREATE TABLE t (id BIGINT PRIMARY KEY) ENGINE=InnoDB")
        table = mariadb.resolved(dying, "t")
        run = connecting.run

        def dies(connection: Any, sql: str, *arguments: str) -> list[object]:
            if sql == "COMMIT":
                dying.kill()
            return list(run(connection, sql, *arguments))

        monkeypatch.setattr(connecting, "run", dies)
        with pytest.raises(ExecutionError, match=f"{_OPEN}inserted before you run it again"):
            MysqlReader().insert(table, columns(table)).insert_rows(numbers(1, 2))


@pytest.mark.parametrize("engine", ["MyISAM", "Aria"])
def test_a_table_without_transactions_keeps_the_rows_before_an_error(
    server: Mariadb, engine: str
) -> None:
    server.execute(
        "DROP TABLE IF EXISTS kept", f"CREATE TABLE kept (id BIGINT PRIMARY KEY) ENGINE={engine}"
    )
    table = mariadb.resolved(server, "kept")
    with pytest.raises(ExecutionError) as caught:
        MysqlReader().insert(table, columns(table)).insert_rows(numbers(1, 2, 1, 3))
    assert "Duplicate entry '1'" in caught.value.message
    assert "rows that were inserted stay so: the table has no transactions" in caught.value.message
    assert server.rows("SELECT id FROM kept ORDER BY id") == [(1,), (2,)]


def test_a_table_without_transactions_keeps_the_rows_before_an_error_of_the_query(
    server: Mariadb,
) -> None:
    server.execute(
        "DROP TABLE IF EXISTS kept", "CREATE TABLE kept (id BIGINT PRIMARY KEY) ENGINE=MyISAM"
    )
    table = mariadb.resolved(server, "kept")

    def broken() -> Iterator[pa.RecordBatch]:
        yield from numbers(1)
        raise ExecutionError("division by zero")

    with pytest.raises(ExecutionError, match="failed, and rows that were inserted stay so"):
        MysqlReader().insert(table, columns(table)).insert_rows(broken())
    assert server.rows("SELECT id FROM kept") == [(1,)]


def test_no_login_is_in_an_error(server: Mariadb) -> None:
    server.execute("DROP TABLE IF EXISTS kept", "CREATE TABLE kept (id BIGINT) ENGINE=InnoDB")
    table = mariadb.resolved(server, "kept")
    wrong = replace(table, login={**table.login, "user": "nobody", "pass": "hunter2"})
    with pytest.raises(ExecutionError, match=r"refuses the login.*no row was inserted") as caught:
        MysqlReader().insert(wrong, columns(table)).insert_rows(numbers(1))
    assert "hunter2" not in caught.value.message
