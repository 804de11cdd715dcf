"""Tables of a real MariaDB that are followed: rows, transactions, positions, definitions."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.changes import OP, Op
from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest, PositionLostError, SourceBatch
from caraway_plugins.changes.mysql.source import MysqlChanges
from caraway_plugins.changes.mysql.streaming import LogLimits
from tests.kit.deadlines import until
from tests.kit.mariadb import LOGGED, Mariadb, serving

Found = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def server() -> Iterator[Mariadb]:
    with serving(in_memory=True, flags=LOGGED) as made:
        yield made


@pytest.fixture
def orders(server: Mariadb) -> Mariadb:
    server.execute(
        "DROP TABLE IF EXISTS orders",
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, note VARCHAR(20)) CHARSET=utf8mb4",
        "INSERT INTO orders VALUES (1, 'one'), (2, NULL)",
    )
    return server


def source(
    server: Mariadb,
    path: str = "orders",
    declared: Sequence[pa.Field] = (),
    key: tuple[str, ...] = (),
    limits: LogLimits | None = None,
    **params: str,
) -> MysqlChanges:
    given = {**server.params, **params}
    request = ChangeRequest(TableName("d"), "mysql", path, given, tuple(declared), key)
    return MysqlChanges(request, limits)


class Followed:
    """The batches of a source, read one after the other."""

    def __init__(self, batches: AsyncGenerator[SourceBatch, None]) -> None:
        self._batches = batches
        self.position = ""
        self.wholes: list[bool] = []

    async def rows(self, count: int) -> Found:
        """Return at least so many changes: their operation and the values."""
        found: Found = []
        while len(found) < count:
            batch = await anext(self._batches)
            if batch.changes.rows.num_rows:
                self.wholes.append(batch.is_whole)
            self.position = batch.position
            for row in batch.changes.rows.to_pylist():
                values = [value for name, value in row.items() if not name.startswith("caraway_")]
                found.append((Op(row[OP]), *values))
        return found


@asynccontextmanager
async def following(changes: MysqlChanges, position: str | None = None) -> AsyncIterator[Followed]:
    async with aclosing(changes.batches(position)) as batches:
        yield Followed(batches)


FIRST: Found = [(Op.TRUNCATE, None, None), (Op.UPSERT, 1, "one"), (Op.UPSERT, 2, None)]


def transact(server: Mariadb, *statements: str) -> None:
    server.execute("BEGIN", *statements, "COMMIT")


async def test_rows_come_first_and_then_their_changes(orders: Mariadb) -> None:
    async with following(source(orders)) as followed:
        assert await followed.rows(3) == FIRST
        transact(
            orders, "INSERT INTO orders VALUES (3, 'three')", "UPDATE orders SET note = 'x'",
            "UPDATE orders SET id = 4 WHERE id = 1", "DELETE FROM orders WHERE id = 2",
        )  # fmt: skip
        assert await followed.rows(7) == [
            (Op.UPSERT, 3, "three"), (Op.UPSERT, 1, "x"), (Op.UPSERT, 2, "x"), (Op.UPSERT, 3, "x"),
            (Op.DELETE, 1, "x"), (Op.UPSERT, 4, "x"), (Op.DELETE, 2, "x"),
        ]  # fmt: skip
        assert followed.wholes == [True, True]
        orders.execute("TRUNCATE TABLE orders")
        assert await followed.rows(1) == [(Op.TRUNCATE, None, None)]


async def test_what_is_rolled_back_or_elsewhere_does_not_come(orders: Mariadb) -> None:
    orders.execute("CREATE DATABASE IF NOT EXISTS other", "DROP TABLE IF EXISTS other.orders",
                   "CREATE TABLE other.orders (id INT PRIMARY KEY, note TEXT)")  # fmt: skip
    async with following(source(orders)) as followed:
        await followed.rows(3)
        orders.execute(
            "BEGIN", "INSERT INTO orders VALUES (8, 'never')", "ROLLBACK",
            "INSERT INTO other.orders VALUES (9, 'x')", "TRUNCATE TABLE other.orders",
            "INSERT INTO orders VALUES (3, 'three')",
        )  # fmt: skip
        assert await followed.rows(1) == [(Op.UPSERT, 3, "three")]


async def test_it_goes_on_after_its_position(orders: Mariadb) -> None:
    async with following(source(orders)) as followed:
        await followed.rows(3)
        orders.execute("INSERT INTO orders VALUES (3, 'a')")
        await followed.rows(1)
        position = followed.position
    orders.execute("INSERT INTO orders VALUES (4, 'b')", "DELETE FROM orders WHERE id = 1")
    for _ in range(2):
        async with following(source(orders), position) as followed:
            assert await followed.rows(2) == [(Op.UPSERT, 4, "b"), (Op.DELETE, 1, "one")]


async def test_a_long_transaction_comes_in_pieces_and_each_is_applied_once(
    orders: Mariadb,
) -> None:
    limits = LogLimits(rows=4, waiting=1)
    async with following(source(orders, limits=limits)) as followed:
        await followed.rows(3)
        values = ", ".join(f"({number}, 'n')" for number in range(10, 20))
        transact(orders, f"INSERT INTO orders VALUES {values}")
        first = await followed.rows(4)
        position = followed.position
        rest = await followed.rows(6)
        assert [row[1] for row in first + rest] == list(range(10, 20))
        assert followed.wholes == [True, False, False, True]
    async with following(source(orders, limits=limits), position) as followed:
        assert await followed.rows(6) == rest


async def test_an_interrupted_load_begins_again(orders: Mariadb) -> None:
    orders.execute("INSERT INTO orders SELECT seq + 10, 'n' FROM seq_1_to_25000")
    async with following(source(orders)) as followed:
        assert len(await followed.rows(1)) == 10_001
        position = followed.position
        assert followed.wholes == [False]
    async with following(source(orders), position) as followed:
        found = await followed.rows(25_003)
        assert found[0][0] == Op.TRUNCATE and len({row[1] for row in found[1:]}) == 25_002
        assert followed.wholes == [False, False, True]


TYPES = {
    "t TINYINT": ("-128", "127"), "u TINYINT UNSIGNED": ("0", "255"), "f TINYINT(1)": ("0", "1"),
    "s SMALLINT": ("-32768", "32767"), "m MEDIUMINT": ("-8388608", "8388607"),
    "mu MEDIUMINT UNSIGNED": ("0", "16777215"), "i INT": ("-2147483648", "2147483647"),
    "iu INT UNSIGNED": ("0", "4294967295"), "b BIGINT": ("-9223372036854775808", "1"),
    "bu BIGINT UNSIGNED": ("0", "18446744073709551615"),
    "d DECIMAL(38,10)": ("-0.0000000001", "1234567890123456789012345678.9999999999"),
    "d2 DECIMAL(65,30)": ("-1.5", "12345678901234567890123456789012345.5"),
    "d3 DECIMAL(5,0)": ("-99999", "10"),
    "r FLOAT": ("0.1", "-3.4e38"), "r2 DOUBLE": ("0.1", "-1.7976931348623157e308"),
    "c CHAR(5)": ("'a '", "'é😀'"), "v VARCHAR(300)": ("''", "'it''s \\n \\\\'"),
    "x LONGTEXT": ("repeat('é', 40000)", "' '"), "j JSON": ("'{\"a\": [1, null]}'", "'[]'"),
    "n BINARY(4)": ("x'00ff0000'", "x'00000000'"), "n2 VARBINARY(9)": ("x'00'", "x''"),
    "n3 BLOB": ("x'00ff00'", "x'01'"),
    "y DATE": ("'1000-01-01'", "'9999-12-31'"), "y2 YEAR": ("0", "2155"),
    "a DATETIME": ("'9999-12-31 23:59:59'", "'1970-01-01 00:00:00'"),
    "a3 DATETIME(3)": ("'2024-02-29 01:02:03.004'", "'1000-01-01 00:00:00'"),
    "a6 DATETIME(6)": ("'2024-02-29 01:02:03.000004'", "'1969-12-31 23:59:59.999999'"),
    "z TIMESTAMP(1) NULL": ("'2024-02-29 01:02:03.4'", "'2038-01-19 03:14:07'"),
    "z6 TIMESTAMP(6) NULL": ("'1970-01-01 00:00:01'", "'2024-10-27 02:30:00.000001'"),
    "z0 TIMESTAMP NULL": ("'2024-03-31 01:30:00'", "'2024-03-31 02:30:00'"),
    "e ENUM('x','é','')": ("'é'", "''"),
}  # fmt: skip


async def test_changes_have_the_values_that_rows_have(server: Mariadb) -> None:
    server.execute(
        "DROP TABLE IF EXISTS kinds",
        f"CREATE TABLE kinds (id INT PRIMARY KEY, {', '.join(TYPES)}) CHARSET=utf8mb4",
    )
    rows = [
        f"({number}, {', '.join(each[number % 2] for each in TYPES.values())})"
        for number in range(2)
    ]
    rows.append(f"(2{', NULL' * len(TYPES)})")
    strict = "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES'"
    changes = source(server, "kinds")
    async with following(changes) as followed:
        assert len(await followed.rows(1)) == 1
        server.execute(strict, *(f"INSERT INTO kinds VALUES {each}" for each in rows))
        streamed = await followed.rows(3)
    async with following(changes) as followed:
        loaded = (await followed.rows(4))[1:]
    for column, (old, new) in enumerate(zip(zip(*loaded, strict=True), zip(*streamed, strict=True),
                                            strict=True)):  # fmt: skip
        assert old == new, list(TYPES)[column - 2]


@pytest.mark.parametrize("kind", ["DATE", "DATETIME", "DATETIME(6)", "TIMESTAMP", "TIMESTAMP(6)"])
async def test_dates_of_zeros_are_errors_in_rows_and_changes(kind: str, server: Mariadb) -> None:
    server.execute("DROP TABLE IF EXISTS zeros",
                   f"CREATE TABLE zeros (id INT PRIMARY KEY, d {kind} NULL)")  # fmt: skip
    insert = "INSERT INTO zeros VALUES (1, NULL), (2, '0000-00-00')"
    async with following(source(server, "zeros")) as followed:
        await followed.rows(1)
        server.execute(insert)
        with pytest.raises(DatasetError, match="a value of column 'd' is no"):
            await followed.rows(2)
    with pytest.raises(DatasetError, match="a value of column 'd' is no"):
        async with following(source(server, "zeros")) as followed:
            await followed.rows(1)


async def test_columns_that_are_declared_are_followed_alone(orders: Mariadb) -> None:
    declared = [pa.field("id", pa.string())]
    async with following(source(orders, declared=declared, key=("id",))) as followed:
        assert (await followed.rows(3))[1:] == [(Op.UPSERT, "1"), (Op.UPSERT, "2")]
        orders.execute("ALTER TABLE orders ADD COLUMN more INT DEFAULT 7",
                       "INSERT INTO orders VALUES (3, 'c', 1)")  # fmt: skip
        assert await followed.rows(1) == [(Op.UPSERT, "3")]


async def test_definitions_that_leave_the_columns_are_nothing(orders: Mariadb) -> None:
    async with following(source(orders)) as followed:
        await followed.rows(3)
        orders.execute(
            "CREATE INDEX by_note ON orders (note)", "ALTER TABLE orders ADD INDEX more (id, note)",
            "ANALYZE TABLE orders", "INSERT INTO orders VALUES (3, 'c')",
        )  # fmt: skip
        assert await followed.rows(1) == [(Op.UPSERT, 3, "c")]


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["ALTER TABLE orders ADD COLUMN more INT"], "has other columns now"),
        (["ALTER TABLE orders MODIFY note TEXT", "INSERT INTO orders VALUES (3, 'c')"],
         "has other columns now"),
        (["ALTER TABLE orders DROP COLUMN note"], "has other columns now"),
        (["DROP TABLE orders"], "was replaced"),
        (["RENAME TABLE orders TO old, old TO orders"], "was replaced"),
        (["ALTER TABLE orders RENAME TO old", "CREATE TABLE orders (id INT PRIMARY KEY)"],
         "was replaced"),
        (["SET SESSION binlog_format = 'STATEMENT'", "DELETE FROM orders"], "was replaced"),
    ],
)  # fmt: skip
async def test_definitions_that_change_it_stop_or_reload(
    statements: list[str], words: str, orders: Mariadb
) -> None:
    orders.execute("DROP TABLE IF EXISTS old")
    async with following(source(orders)) as followed:
        await followed.rows(3)
        orders.execute(*statements)
        with pytest.raises(DatasetError, match=words) as caught:
            await followed.rows(1)
    is_lost = isinstance(caught.value, PositionLostError)
    assert is_lost == (words == "was replaced")


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
async def test_distributed_transactions_reload(end: str, orders: Mariadb) -> None:
    begin = ("XA START 'x'", "INSERT INTO orders VALUES (3, 'c')", "XA END 'x'", "XA PREPARE 'x'")
    async with following(source(orders)) as followed:
        await followed.rows(3)
        orders.execute(*begin, "XA ROLLBACK 'x'", "INSERT INTO orders VALUES (4, 'd')")
        with pytest.raises(PositionLostError):
            await followed.rows(1)
    async with following(source(orders)) as followed:
        assert [row[1] for row in await followed.rows(4)] == [None, 1, 2, 4]
        orders.execute(*begin, f"XA {end} 'x'", "INSERT INTO orders VALUES (5, 'e')")
        with pytest.raises(PositionLostError):
            await followed.rows(1)
    expected = [None, 1, 2, *([3] if end == "COMMIT" else []), 4, 5]
    async with following(source(orders)) as followed:
        assert [row[1] for row in await followed.rows(len(expected))] == expected


async def test_a_server_that_dies_is_an_error_and_nothing_is_lost(orders: Mariadb) -> None:
    async with following(source(orders)) as followed:
        await followed.rows(3)
        position = followed.position
        orders.execute("INSERT INTO orders VALUES (3, 'c')")
        orders.kill()
        with pytest.raises(DatasetError) as caught:
            while True:
                await followed.rows(1)
        assert caught.value.type == "unavailable"
    with pytest.raises(DatasetError, match="cannot be reached"):
        async with following(source(orders), position) as followed:
            await followed.rows(1)
    orders.start()
    async with following(source(orders), position) as followed:
        assert await followed.rows(1) == [(Op.UPSERT, 3, "c")]


async def test_a_log_that_is_gone_reloads(orders: Mariadb) -> None:
    async with following(source(orders)) as followed:
        await followed.rows(3)
        position = followed.position
    orders.execute(
        "INSERT INTO orders VALUES (3, 'c')", "FLUSH BINARY LOGS",
        "INSERT INTO orders VALUES (4, 'd')", "FLUSH BINARY LOGS",
    )  # fmt: skip

    def purged() -> bool:
        # The server keeps files until those who read them are gone.
        *_, (last, *_) = orders.rows("SHOW BINARY LOGS")
        orders.execute(f"PURGE BINARY LOGS TO '{last}'")
        return len(orders.rows("SHOW BINARY LOGS")) == 1

    until(purged, "the log is gone")
    with pytest.raises(PositionLostError, match="no longer has its binary log"):
        async with following(source(orders), position) as followed:
            await followed.rows(1)


@pytest.mark.parametrize("position", ["", "{}", '{"topic": "t", "offsets": {}}', "[1]"])
async def test_a_position_of_another_source_reloads(position: str, orders: Mariadb) -> None:
    with pytest.raises(PositionLostError):
        async with following(source(orders), position) as followed:
            await followed.rows(1)


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("binlog_format", "MIXED", "SET GLOBAL binlog_format = 'ROW'"),
        ("binlog_row_image", "MINIMAL", "SET GLOBAL binlog_row_image = 'FULL'"),
        ("binlog_row_metadata", "NO_LOG", "SET GLOBAL binlog_row_metadata = 'FULL'"),
    ],
)
async def test_settings_of_the_server_are_checked(
    setting: str, value: str, words: str, orders: Mariadb
) -> None:
    (before,) = orders.rows(f"SELECT @@global.{setting}")[0]
    orders.execute(f"SET GLOBAL {setting} = '{value}'")
    try:
        with pytest.raises(DatasetError) as caught:
            await source(orders).schema()
        assert caught.value.type == "unsupported" and words in caught.value.message
    finally:
        orders.execute(f"SET GLOBAL {setting} = '{before}'")


REFUSED = [
    (["CREATE VIEW {t} AS SELECT 1 AS id"], "is a view, or its engine"),
    (["CREATE TABLE {t} (id INT PRIMARY KEY) ENGINE=MyISAM"], "is a view, or its engine"),
    (["CREATE TABLE {t} (id INT)"], "has no primary key"),
    (["CREATE TABLE {t} (id INT PRIMARY KEY, b BIT(3))"], "column 'b' (bit) are not followed"),
    (["CREATE TABLE {t} (id INT PRIMARY KEY, s SET('a'))"], "column 's' (set"),
    (["CREATE TABLE {t} (id INT PRIMARY KEY, s TEXT CHARACTER SET latin1)"], "(text in latin1)"),
    (["CREATE TABLE IF NOT EXISTS parent (id INT PRIMARY KEY)",
      "CREATE TABLE {t} (id INT PRIMARY KEY, p INT, CONSTRAINT k FOREIGN KEY (p) REFERENCES parent "
      "(id) ON DELETE CASCADE)"], "foreign key 'k' changes rows"),
    ([], "no table 'caraway.away"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "statements", "words"),
                         [(number, *each) for number, each in enumerate(REFUSED)])  # fmt: skip
async def test_tables_that_cannot_be_followed_are_refused(
    number: int, statements: list[str], words: str, server: Mariadb
) -> None:
    name = f"refused{number}" if statements else "away"
    server.execute(*(each.format(t=name) for each in statements))
    with pytest.raises(DatasetError) as caught:
        await source(server, name).primary_key()
    assert words in caught.value.message


async def test_a_user_without_the_right_is_told_which(orders: Mariadb) -> None:
    orders.execute(
        "CREATE USER IF NOT EXISTS reader IDENTIFIED BY 'hunter2'",
        "GRANT SELECT ON caraway.* TO reader",
    )
    changes = source(orders, mysql_user="reader", mysql_pass="hunter2")
    with pytest.raises(DatasetError, match="grant the user REPLICATION SLAVE") as caught:
        async with following(changes) as followed:
            await followed.rows(99)
    assert caught.value.type == "auth" and "hunter2" not in caught.value.message
