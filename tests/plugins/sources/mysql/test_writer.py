"""Changes of MySQL tables: texts, tables without transactions, and statements that are stopped."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from caraway_core.errors import ExecutionError, QueryError
from caraway_core.ids import TableName
from caraway_core.protocols.remote import TableChange
from caraway_engine.sessions.sessions import Session
from caraway_plugins.sources.mysql.reader import MysqlReader
from tests.kit.deadlines import until
from tests.kit.engine import rows, session
from tests.kit.mariadb import Mariadb, resolved, serving


@pytest.fixture(scope="module")
def server() -> Iterator[Mariadb]:
    with serving(in_memory=True) as made:
        yield made


async def write(over: Session, sql: str) -> int:
    (found,) = await rows(over, sql, writable=frozenset({TableName("t")}))
    return int(found["count"])


def made(server: Mariadb, columns: str, *values: str, engine: str = "InnoDB") -> Session:
    server.execute(
        "DROP TABLE IF EXISTS t",
        f"CREATE TABLE t ({columns}) ENGINE={engine} CHARSET=utf8mb4",
        *(f"INSERT INTO t VALUES {each}" for each in values),
    )
    return session({"t": resolved(server, "t")})


async def test_bytes_decide_which_texts_are_equal(server: Mariadb) -> None:
    over = made(
        server, "s VARCHAR(9) COLLATE utf8mb4_general_ci, n INT",
        "('a', 1), ('A', 2), ('a ', 3), ('ä', 4), (NULL, 5)",
    )  # fmt: skip
    assert await write(over, "UPDATE t SET n = 10 WHERE s = 'a'") == 1
    assert await write(over, "UPDATE t SET n = 20 WHERE s IN ('A', 'b')") == 1
    assert await write(over, "DELETE FROM t WHERE s <> 'a' AND s <> 'A'") == 2
    assert await rows(over, "SELECT * FROM t ORDER BY n") == [
        {"s": None, "n": 5}, {"s": "a", "n": 10}, {"s": "A", "n": 20},
    ]  # fmt: skip


async def test_dates_are_not_compared_and_other_texts_not_either(server: Mariadb) -> None:
    over = made(server, "d DATE, s VARCHAR(9) CHARACTER SET latin1", "('2024-01-01', 'a')")
    for sql in ("DELETE FROM t WHERE d > DATE '2020-01-01'", "DELETE FROM t WHERE s = 'a'"):
        with pytest.raises(QueryError, match="its database may take its condition otherwise"):
            await write(over, sql)
    assert await write(over, "UPDATE t SET d = DATE '2020-01-01', s = 'b' WHERE d IS NOT NULL") == 1


async def test_a_table_without_transactions_keeps_changes_before_an_error(
    server: Mariadb,
) -> None:
    over = made(server, "id BIGINT PRIMARY KEY", "(1), (2), (5)", engine="MyISAM")
    with pytest.raises(ExecutionError, match="rows that were changed stay so: the table has no tr"):
        await write(over, "UPDATE t SET id = id + 3")
    assert server.rows("SELECT sum(id) FROM t") == [(11,)]


def test_a_change_that_waits_is_stopped_at_the_server(server: Mariadb) -> None:
    made(server, "id BIGINT PRIMARY KEY", "(1), (2)")
    change = MysqlReader().change(resolved(server, "t"), TableChange("`id` > 0"))
    failed: list[QueryError] = []

    def run() -> None:
        with pytest.raises(QueryError) as caught:
            change.write_rows()
        failed.append(caught.value)

    waits = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'DELETE FROM%'"
    with closing(server.connect()) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM t WHERE id = 2 FOR UPDATE")
        thread = threading.Thread(target=run)
        thread.start()
        until(lambda: bool(server.rows(waits)), "the statement waits")
        change.close()
        thread.join(60)
        assert not thread.is_alive() and not server.rows(waits)
    assert "no row was deleted" in failed[0].message
    assert server.rows("SELECT count(*) FROM t") == [(2,)]
