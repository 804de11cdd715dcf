"""Tables of MariaDB: their discovery, their values, what is refused, and reads that are stopped."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Thread

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_engine.remote import datasets
from caraway_plugins.sources import key_ranges
from caraway_plugins.sources.mysql import connecting
from caraway_plugins.sources.mysql.reader import MysqlReader
from caraway_plugins.sources.mysql.source import MysqlSource
from tests.kit.deadlines import until
from tests.kit.engine import rows, session
from tests.kit.mariadb import Mariadb, quoted, request, resolved, serving
from tests.kit.remote import watched


@pytest.fixture(scope="module")
def server() -> Iterator[Mariadb]:
    with serving() as made:
        made.execute(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(20)) CHARSET=utf8mb4",
            "INSERT INTO t VALUES (1, 'a'), (2, 'B'), (3, NULL)",
        )
        yield made


def refused(server: Mariadb, name: str, **params: str) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        MysqlSource().resolve(request(server, name, **params))
    assert caught.value.message.startswith("dataset 't': ")
    assert "hunter2" not in caught.value.message
    return caught.value


@pytest.mark.parametrize("name", ["t", "caraway.t", '"caraway"."t"'])
async def test_a_name_has_one_part_or_two(server: Mariadb, name: str) -> None:
    over = session({"t": resolved(server, name)})
    assert await rows(over, "SELECT name FROM t WHERE id = 2") == [{"name": "B"}]


def test_a_connection_string_takes_precedence(server: Mariadb) -> None:
    url = "mysql://ro%40ot:x%2Fy@h:3307/d?ssl-mode=disabled"
    found = connecting.login(request(server, "t", mysql_connection_string=url))
    assert found == {
        "host": "h", "port": "3307", "db": "d", "user": "ro@ot", "pass": "x/y",
        "sslmode": "disabled", "sslrootcert": "",
    }  # fmt: skip


def test_what_is_wrong_is_said(server: Mariadb) -> None:
    assert refused(server, "none").type == "not_found"
    assert refused(server, "a.b.c").type == "invalid"
    assert refused(server, "t", mysql_db="none").type == "not_found"
    assert refused(server, "t", mysql_user="nobody", mysql_pass="hunter2").type == "auth"
    assert refused(server, "t", mysql_host="127.0.0.1", mysql_tcp_port="1").type == "unavailable"
    assert refused(server, "t", mysql_host="").type == "invalid"
    assert refused(server, "t", mysql_tcp_port="0").type == "invalid"
    assert refused(server, "t", mysql_sslmode="perhaps").type == "invalid"
    assert refused(server, "t", mysql_connection_string="hunter2").type == "invalid"


VALUES = [
    ("BIGINT UNSIGNED ZEROFILL", "18446744073709551615", pa.uint64(), 2**64 - 1),
    ("INT UNSIGNED", "4294967295", pa.uint32(), 2**32 - 1),
    ("MEDIUMINT", "-8388608", pa.int32(), -(2**23)),
    ("TINYINT", "-128", pa.int8(), -128),
    ("BOOLEAN", "TRUE", pa.bool_(), True),
    ("BOOLEAN", "2", pa.bool_(), None),
    ("FLOAT", "0.1", pa.float32(), 0.10000000149011612),
    ("DOUBLE", "1.7976931348623157e308", pa.float64(), 1.7976931348623157e308),
    ("DECIMAL(38,10)", "-0.0000000001", pa.decimal128(38, 10), Decimal("-0.0000000001")),
    ("DECIMAL(65,30)", "1.5", pa.string(), "1.500000000000000000000000000000"),
    ("DATE", "'9999-12-31'", pa.date32(), date(9999, 12, 31)),
    ("DATE", "'0000-00-00'", pa.date32(), None),
    ("DATE", "'2023-02-31'", pa.date32(), None),
    ("DATETIME", "'2024-02-29 12:30:15'", pa.timestamp("us"), datetime(2024, 2, 29, 12, 30, 15)),
    ("DATETIME(6)", "'0000-00-00 00:00:00'", pa.timestamp("us"), None),
    ("TIMESTAMP(6) NULL", "'2024-02-29 12:30:15.000001'", pa.timestamp("us", "UTC"),
     datetime(2024, 2, 29, 12, 30, 15, 1, UTC)),
    ("TIME(3)", "'-838:59:59'", pa.string(), "-838:59:59.000"),
    ("YEAR", "2024", pa.int16(), 2024),
    ("BIT(3)", "5", pa.binary(), b"\x05"),
    ("JSON", "'{\"a\": 1}'", pa.string(), '{"a": 1}'),
    ("ENUM('b', 'a')", "'a'", pa.string(), "a"),
    ("VARBINARY(3)", "x'00FF27'", pa.binary(), b"\x00\xff'"),
    ("VARCHAR(10) CHARACTER SET latin1", "'Ä'", pa.string(), "Ä"),
    ("LONGTEXT CHARACTER SET utf8mb4", "repeat('é', 40000)", pa.string(), "é" * 40_000),
    ("LONGBLOB", "repeat('x', 300)", pa.binary(), b"x" * 300),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "written", "arrow", "value"), VALUES)
async def test_a_value_is_that_of_its_column_or_an_error(
    server: Mariadb, type_: str, written: str, arrow: pa.DataType, value: object
) -> None:
    server.execute(
        "DROP TABLE IF EXISTS one",
        f"CREATE TABLE one (v {type_})",
        "SET @@sql_mode = 'ALLOW_INVALID_DATES'",
        f"INSERT INTO one VALUES ({written}), (NULL)",
    )
    table = resolved(server, "one")
    assert table.schema.types == [arrow]
    over = session({"t": table})
    if value is None:
        with pytest.raises(QueryError, match=r"a value of column '\w+' is not a"):
            await rows(over, "SELECT v FROM t")
    else:
        assert await rows(over, "SELECT v FROM t") == [{"v": value}, {"v": None}]


async def test_no_collation_and_no_blank_decides_what_is_equal(server: Mariadb) -> None:
    server.execute(
        "CREATE TABLE folded (s VARCHAR(9) COLLATE utf8mb4_general_ci) CHARSET=utf8mb4",
        "INSERT INTO folded VALUES ('a'), ('A'), ('a '), ('ä'), ('b\\''), (NULL)".replace(
            "\\'", "''"
        ),
    )
    over = session({"t": resolved(server, "folded")})
    with watched("mysql") as sent:
        assert await rows(over, "SELECT count(*) AS n FROM t WHERE s = 'a'") == [{"n": 1}]
        assert await rows(over, "SELECT s FROM t WHERE s IN ('A', 'b''')") == [
            {"s": "A"}, {"s": "b'"},
        ]  # fmt: skip
        assert await rows(over, "SELECT count(DISTINCT s) AS n FROM t") == [{"n": 5}]
        assert await rows(over, "SELECT max(s) AS m FROM t") == [{"m": "ä"}]
        assert await rows(over, "SELECT count(*) AS n FROM t WHERE s > 'a'") == [{"n": 3}]
    # An index finds what is equal to the database, and its bytes say what is equal to the engine.
    assert sent[0].startswith("SELECT count(*)") and "WHERE (`s` IN ('a') AND CAST(" in sent[0]
    assert not any("max(" in each or "DISTINCT" in each or "`s` >" in each for each in sent)


async def test_a_key_without_sign_is_found_by_the_server(server: Mariadb) -> None:
    server.execute(
        "CREATE TABLE numbered (id INT UNSIGNED PRIMARY KEY, k BIGINT UNSIGNED)",
        "INSERT INTO numbered VALUES (1, 5), (4294967295, 18446744073709551615)",
    )
    over = session({"t": resolved(server, "numbered")})
    with watched("mysql") as sent:
        assert await rows(over, "SELECT k FROM t WHERE id = 4294967295") == [{"k": 2**64 - 1}]
        assert await rows(over, "SELECT max(k) AS k, sum(id) AS s FROM t WHERE id > -1") == [
            {"k": 2**64 - 1, "s": 2**32}
        ]
        assert await rows(over, "SELECT id FROM t WHERE k < 9223372036854775808") == [{"id": 1}]
    assert "WHERE (`id` = CAST(4294967295 AS SIGNED))" in sent[0]
    assert "max(`k`)" in sent[1] and "sum(`id`)" in sent[1]


async def test_dates_that_are_none_are_in_no_answer(server: Mariadb) -> None:
    server.execute(
        "CREATE TABLE zero (id INT, d DATE)",
        "INSERT INTO zero VALUES (1, '2024-01-01'), (2, '0000-00-00')",
    )
    over = session({"t": resolved(server, "zero")})
    with watched("mysql") as sent:
        assert await rows(over, "SELECT id FROM t WHERE d >= DATE '2024-01-01'") == [{"id": 1}]
    assert "WHERE (`d` >= DATE '2024-01-01')" in sent[0]
    with pytest.raises(QueryError, match=r"a value of column '\w+' is not a date32"):
        await rows(over, "SELECT id FROM t WHERE d < DATE '2024-01-01'")


async def test_first_rows_have_the_order_of_nulls(server: Mariadb) -> None:
    over = session({"t": resolved(server, "t")})
    server.execute("CREATE TABLE n (i INT)", "INSERT INTO n VALUES (2), (NULL), (1)")
    over = session({"t": resolved(server, "n")})
    for order, expected in [
        ("i NULLS FIRST LIMIT 2", [None, 1]),
        ("i LIMIT 3", [1, 2, None]),
        ("i DESC NULLS LAST LIMIT 2", [2, 1]),
        ("i DESC OFFSET 1", [2, 1]),
    ]:
        with watched("mysql") as sent:
            found = await rows(over, f"SELECT i FROM t ORDER BY {order}")
        assert [each["i"] for each in found] == expected
        assert "ORDER BY" in sent[0]


async def test_rows_of_many_batches_and_packets(server: Mariadb) -> None:
    server.execute(
        "CREATE TABLE many AS SELECT seq AS i, concat('row ', seq) AS s, "
        "if(seq % 3, NULL, repeat('x', seq % 700)) AS x FROM seq_1_to_50000"
    )
    over = session({"t": resolved(server, "many")})
    (found,) = await rows(
        over, "SELECT count(*) AS n, sum(i) AS s, count(x) AS x, sum(length(x)) AS l FROM t "
        "WHERE s LIKE 'row %'"
    )  # fmt: skip
    lengths = sum(each % 700 for each in range(3, 50_001, 3))
    assert found == {"n": 50_000, "s": 1_250_025_000, "x": 16_666, "l": lengths}


def test_a_read_is_stopped_at_the_server(server: Mariadb) -> None:
    sql = "SELECT count(*) FROM seq_1_to_100000 a, seq_1_to_100000 b, seq_1_to_100000 c"
    found = MysqlReader().read(resolved(server, "t"), sql, pa.schema([("n", pa.int64())]))
    got: list[object] = []

    def read() -> None:
        with pytest.raises(QueryError):
            got.extend(found)
        got.append("stopped")

    thread = Thread(target=read)
    thread.start()
    running = (
        "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'SELECT count(*) FROM seq%'"
    )
    until(lambda: bool(server.rows(running)), "the statement runs")
    found.close()
    thread.join(60)
    assert not thread.is_alive() and got == ["stopped"]
    until(lambda: not server.rows(running), "the statement ended")


def test_a_server_that_dies_is_an_error_of_the_statement() -> None:
    with serving() as server:
        server.execute("CREATE TABLE t (i INT)")
        sql = "SELECT seq FROM seq_1_to_10000000"
        found = iter(MysqlReader().read(resolved(server, "t"), sql, pa.schema([("n", pa.int64())])))
        assert next(found).num_rows
        server.kill()
        with pytest.raises(QueryError, match="the connection failed"):
            list(found)


async def test_a_table_that_is_gone_is_an_error_of_the_statement(server: Mariadb) -> None:
    server.execute("CREATE TABLE gone (i INT)")
    over = session({"t": resolved(server, "gone")})
    server.execute("DROP TABLE gone")
    with pytest.raises(QueryError, match="it is not what it was when it was loaded"):
        await rows(over, "SELECT * FROM t")


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        ("SMALLINT", "CAST(seq AS SIGNED) - 5"),
        ("BIGINT UNSIGNED", "18446744073709551615 - seq * 9"),
        ("INT", "if(seq = 1, -2147483648, seq)"),
    ],
)
async def test_a_large_table_is_cut_into_ranges_of_its_key(
    server: Mariadb, monkeypatch: pytest.MonkeyPatch, column: str, numbers: str
) -> None:
    monkeypatch.setattr(key_ranges, "SPLIT_BYTES", 4_096)
    name = "k`ey; --"
    server.execute(
        "DROP TABLE IF EXISTS large",
        f"CREATE TABLE large ({quoted(name)} {column} PRIMARY KEY, v INT) ENGINE=Aria",
        f"INSERT INTO large SELECT {numbers}, seq FROM seq_1_to_2000",
    )
    table = resolved(server, "large")
    assert 2 <= len(table.splits) <= key_ranges.MOST_SPLITS and table.is_divisible
    counts = [
        server.rows(f"SELECT count(*) FROM large WHERE {datasets.in_split(table, each)}")[0][0]
        for each in table.splits
    ]
    assert sum(counts) == 2_000
    over = session({"t": table})
    assert await rows(over, "SELECT count(*) AS n, sum(v) AS s FROM t") == [
        {"n": 2_000, "s": 2_001_000}
    ]


def test_what_has_no_key_of_whole_numbers_is_read_in_one_piece(
    server: Mariadb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_ranges, "SPLIT_BYTES", 1)
    for number, columns in enumerate((
        "a INT", "a VARCHAR(9) PRIMARY KEY", "a INT, b INT, PRIMARY KEY (a, b)", "a INT UNIQUE",
        "a INT PRIMARY KEY",
    )):  # fmt: skip
        server.execute(f"CREATE TABLE uncut{number} ({columns}) ENGINE=Aria")
        if number < 4:
            assert not resolved(server, f"uncut{number}").splits
    assert not resolved(server, "uncut4").splits  # It has no rows.
    server.execute("CREATE VIEW uncut_view AS SELECT 1 AS a")
    assert not resolved(server, "uncut_view").splits


@pytest.mark.parametrize("number", [-(2**63), -(2**63) + 1, -(2**63) + 2**31, -1, 0, 2**63 - 1])
async def test_sums_near_the_ends_of_64_bits_are_those_of_the_database(
    server: Mariadb, number: int
) -> None:
    server.execute(
        "DROP TABLE IF EXISTS ends", "CREATE TABLE ends (i BIGINT)",
        f"INSERT INTO ends VALUES ({number}), (0)",
    )  # fmt: skip
    over = session({"t": resolved(server, "ends")})
    with watched("mysql") as sent:
        assert await rows(over, "SELECT sum(i) AS s FROM t") == [{"s": number}]
    assert "sum(" in sent[0]
