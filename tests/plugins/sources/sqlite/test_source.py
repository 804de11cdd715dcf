"""Tables of SQLite files: their discovery, values of any type, and the refused ones."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_plugins.sources.sqlite import connecting
from caraway_plugins.sources.sqlite.reader import SqliteReader
from caraway_plugins.sources.sqlite.source import SqliteSource
from tests.kit.engine import rows, session
from tests.kit.remote import watched
from tests.kit.sqlite_files import request, resolved, run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "tables with ünï?%.db"
    run(
        made,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT, name VARCHAR(20))",
        "INSERT INTO t VALUES (1, 10, 'a'), (2, -9223372036854775808, 'B'), (3, NULL, NULL)",
    )
    return made


def refused(file: Path, name: str, **params: str) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        SqliteSource().resolve(request(file, name, **params))
    assert caught.value.message.startswith("dataset 't': ")
    assert str(file.parent) not in caught.value.message
    return caught.value


@contextmanager
def writing(file: Path, *statements: str) -> Iterator[None]:
    """Run statements in another process, which then keeps the file open.

    In this one the locks of Python's own SQLite would not hold for that of the driver.
    """
    program = (
        f"import sqlite3, sys; connection = sqlite3.connect({str(file)!r}, isolation_level=None); "
        f"[connection.execute(each).fetchall() for each in {statements!r}]; "
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        yield
        writer.communicate()


def test_a_view_of_a_table_that_is_gone_is_refused(file: Path) -> None:
    run(file, "CREATE VIEW broken AS SELECT * FROM gone")
    assert refused(file, "broken").type == "invalid"


async def test_a_file_that_another_process_writes_is_tried_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_SETTINGS", ())
    over = session({"t": resolved(file, "t")})
    with writing(file, "BEGIN EXCLUSIVE"):
        assert refused(file, "t").type == "unavailable"
        with pytest.raises(QueryError, match="another process writes to its file"):
            await rows(over, "SELECT * FROM t")
    assert len(await rows(over, "SELECT * FROM t")) == 3


async def test_a_log_of_changes_is_read_and_noticed(file: Path) -> None:
    source = SqliteSource()
    over = session({"t": resolved(file, "t")})
    before = source.fingerprint(request(file, "t"))
    with writing(
        file,
        "PRAGMA journal_mode = WAL",
        "INSERT INTO t VALUES (4, 1, 'd')",
        "BEGIN IMMEDIATE",
        "DELETE FROM t",
    ):
        assert source.fingerprint(request(file, "t")) != before
        assert len(await rows(over, "SELECT * FROM t")) == 4


TYPES = {
    "INTEGER": pa.int64(),
    "unsigned big int": pa.int64(),
    "SMALLINT": pa.int16(),
    "tinyint(1)": pa.int8(),
    "NVARCHAR(100)": pa.string(),
    "NATIVE CHARACTER(70)": pa.string(),
    "CLOB": pa.string(),
    "BLOB": pa.binary(),
    "DOUBLE PRECISION": pa.float64(),
    "float": pa.float64(),
    "DECIMAL(10,5)": pa.decimal128(10, 5),
    "numeric ( 7 )": pa.decimal128(7, 0),
    "NUMERIC": pa.string(),
    "DECIMAL(50, 2)": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "DATETIME": pa.timestamp("us"),
    "timestamp  with time zone": pa.timestamp("us", "UTC"),
    "TIME": pa.time64("us"),
    "JSON": pa.string(),
    "": pa.string(),
}


def test_types_are_those_that_the_table_says(file: Path) -> None:
    columns = ", ".join(f'"c{number}" {type_}' for number, type_ in enumerate(TYPES))
    run(file, f"CREATE TABLE typed ({columns})")
    assert resolved(file, "typed").schema.types == list(TYPES.values())


VALUES = [
    ("INT", "'12'", 12),
    ("INT", "'abc'", None),
    ("INT", "1.5", None),
    ("INT", "x'01'", None),
    ("INT", "9223372036854775807", 2**63 - 1),
    ("INT", "9223372036854775808", None),
    ("SMALLINT", "-32768", -(2**15)),
    ("SMALLINT", "32768", None),
    ("REAL", "9007199254740993", 9007199254740992.0),
    ("REAL", "'x'", None),
    ("REAL", "9e999", float("inf")),
    ("TEXT", "12", "12"),
    ("TEXT", "x'41'", None),
    ("TEXT", "CAST(x'FF41' AS TEXT)", None),
    ("TEXT", "'a' || char(0) || 'b'", "a\0b"),
    ("BLOB", "x'00FF'", b"\0\xff"),
    ("BLOB", "'a'", None),
    ("BOOLEAN", "TRUE", True),
    ("BOOLEAN", "2", None),
    ("BOOLEAN", "'true'", None),
    ("DECIMAL(15,2)", "9999999999999.99", Decimal("9999999999999.99")),
    ("DECIMAL(15,2)", "'1.10'", Decimal("1.10")),
    ("DECIMAL(15,2)", "7", Decimal(7)),
    ("DECIMAL(15,2)", "1.005", None),
    ("DECIMAL(15,2)", "0.1 + 0.2", None),
    ("DECIMAL(15,2)", "'99999999999999999.99'", None),
    ("DECIMAL(38,0)", "1e20", Decimal(10**20)),
    ("DATE", "'2024-02-29'", date(2024, 2, 29)),
    ("DATE", "'2023-02-29'", None),
    ("DATE", "'2024-02-29 00:00:00'", None),
    ("DATE", "1709164800", None),
    ("DATETIME", "'2024-02-29 12:30:15.123456'", datetime(2024, 2, 29, 12, 30, 15, 123456)),
    ("DATETIME", "'2024-02-29T12:30'", datetime(2024, 2, 29, 12, 30)),
    ("DATETIME", "'2024-02-29 12:30:15Z'", None),
    ("DATETIME", "'soon'", None),
    ("DATE", "CAST('2024-02-29' AS BLOB)", None),
    ("DATETIME", "CAST('2024-02-29 12:30' AS BLOB)", None),
    ("DATETIME", "2024", None),
    ("TIME", "'12:30:15.5'", time(12, 30, 15, 500_000)),
    ("TIME", "12", None),
    ("", "0.1", "0.1"),
    ("", "0.1 + 0.2", "0.30000000000000004"),
    ("", "-5", "-5"),
    ("", "x'41'", None),
]


@pytest.mark.parametrize(("type_", "written", "value"), VALUES)
async def test_a_value_is_that_of_its_column_or_an_error(
    file: Path, type_: str, written: str, value: object
) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
    run(
        file,
        f'CREATE TABLE one (id INT, "it\'s" {type_})',
        f"INSERT INTO one {many} SELECT i, NULL FROM n",
        f"INSERT INTO one VALUES (0, {written})",
    )
    over = session({"t": resolved(file, "one")})
    column = '"it\'s"'
    statements = [
        f"SELECT {column} FROM t WHERE id = 0",
        f"SELECT {column} FROM t",
        f"SELECT {column} FROM t GROUP BY {column}",
        f"SELECT max({column}) FROM t",
    ]
    for sql in statements:
        if value is None:
            with pytest.raises(QueryError, match=r"a value of column '.*' is not a"):
                await rows(over, sql)
        else:
            found = [each for row in await rows(over, sql) for each in row.values()]
            assert [each for each in found if each is not None] == [value]


@pytest.mark.parametrize("where", ["n > 5", "n < 5", "n <> 5", "n = 5", "n IN (5)", "n IS NULL"])
async def test_no_filter_hides_a_value_of_another_type(file: Path, where: str) -> None:
    run(file, "INSERT INTO t VALUES (4, 'abc', 'd')")
    over = session({"t": resolved(file, "t")})
    with pytest.raises(QueryError, match="a value of column 'n' is not a int64"):
        await rows(over, f"SELECT name FROM t WHERE {where}")


@pytest.mark.parametrize("type_", ["", "REAL", "NUMERIC", "BLOB"])
@pytest.mark.parametrize("own", [pa.int64(), pa.int16()])
async def test_a_double_is_no_integer_where_the_table_makes_none_of_it(
    file: Path, type_: str, own: pa.DataType
) -> None:
    number = "2.5" if type_ == "NUMERIC" else "2.0"
    run(file, f"CREATE TABLE loose (n {type_})", f"INSERT INTO loose VALUES ({number})")
    over = session({"t": resolved(file, "loose", [pa.field("n", own)])})
    for sql in ("SELECT count(*) FROM t WHERE n > 0", "SELECT n, count(*) FROM t GROUP BY n"):
        with pytest.raises(QueryError, match="a value of column 'n' is not a int"):
            await rows(over, sql)


async def test_declared_columns_are_those_of_the_dataset(file: Path) -> None:
    run(file, "CREATE TABLE odd AS SELECT 7 AS n, '1.50' AS price, 3 AS x UNION ALL SELECT 8, 2, 4")
    declared = [pa.field("n", pa.string()), pa.field("price", pa.decimal128(20, 2))]
    over = session({"t": resolved(file, "odd", declared)})
    assert await rows(over, "SELECT * FROM t WHERE n = '7'") == [
        {"n": "7", "price": Decimal("1.50")}
    ]
    assert await rows(over, "SELECT sum(price) AS s FROM t") == [{"s": Decimal("3.50")}]
    with pytest.raises(DatasetError, match="no column 'y'"):
        resolved(file, "odd", [pa.field("y", pa.int64())])


async def test_no_collation_of_a_column_applies(file: Path) -> None:
    run(
        file,
        "CREATE TABLE folded (name TEXT COLLATE NOCASE, tail TEXT COLLATE RTRIM) STRICT",
        "INSERT INTO folded VALUES ('a', 'x'), ('A', 'x '), ('b', 'y')",
        "CREATE VIEW above AS SELECT name, tail FROM folded",
    )
    for name in ("folded", "above"):
        over = session({"t": resolved(file, name)})
        with watched("sqlite") as sent:
            assert await rows(over, "SELECT count(*) AS n FROM t WHERE name = 'a'") == [{"n": 1}]
            assert await rows(over, "SELECT count(*) AS n FROM t WHERE tail IN ('x')") == [{"n": 1}]
            assert len(await rows(over, "SELECT name FROM t GROUP BY name")) == 3
            assert await rows(over, "SELECT count(DISTINCT tail) AS n FROM t") == [{"n": 3}]
            assert await rows(over, "SELECT name FROM t ORDER BY name LIMIT 1") == [{"name": "A"}]
            assert await rows(over, "SELECT max(name) AS m FROM t") == [{"m": "b"}]
        assert [each for each in sent if "WHERE" in each or "GROUP BY" in each]


async def test_texts_of_other_encodings_are_compared_by_the_engine(tmp_path: Path) -> None:
    file = tmp_path / "wide.db"
    run(
        file,
        "PRAGMA encoding = 'UTF-16le'",
        "CREATE TABLE t (name TEXT)",
        "INSERT INTO t VALUES ('b'), ('ā'), ('\U0001f600'), ('\ufb01')",
    )
    over = session({"t": resolved(file, "t")})
    assert await rows(over, "SELECT name FROM t ORDER BY name LIMIT 3") == [
        {"name": "b"}, {"name": "ā"}, {"name": "\ufb01"},
    ]  # fmt: skip


async def test_keys_and_strict_columns_are_found_by_their_indexes(file: Path) -> None:
    run(
        file,
        "CREATE TABLE strict (a INT, b TEXT) STRICT",
        "CREATE INDEX i ON strict (a)",
        "CREATE TABLE ends (a INTEGER, b INTEGER, PRIMARY KEY (a, b))",
        "CREATE TABLE lone (a INTEGER PRIMARY KEY) WITHOUT ROWID",
    )
    assert 'SELECT "id" AS "id"' in resolved(file, "t").login["view"]
    assert 'SELECT "a" AS "a"' in resolved(file, "strict").login["view"]
    for name in ("ends", "lone"):
        assert 'SELECT "a" AS "a"' not in resolved(file, name).login["view"]


async def test_an_offset_needs_no_limit(file: Path) -> None:
    over = session({"t": resolved(file, "t")})
    with watched("sqlite") as sent:
        found = await rows(over, "SELECT id FROM t ORDER BY id DESC OFFSET 1")
    assert found == [{"id": 2}, {"id": 1}]
    assert [each for each in sent if "LIMIT -1 OFFSET 1" in each]


def test_rows_have_the_order_of_the_statement(file: Path) -> None:
    run(
        file,
        "CREATE TABLE many AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < 50000) SELECT CAST(i * 7919 % 50001 AS INT) AS i FROM n",
    )
    table = resolved(file, "many")
    sql = 'SELECT "i" FROM "many" ORDER BY "i" DESC NULLS LAST'
    found = SqliteReader().read(table, sql, pa.schema([("i", pa.int64())]))
    assert pa.Table.from_batches(list(found))["i"].to_pylist() == list(range(50_000, -1, -1))


async def test_a_sum_that_is_too_large_is_said_to_be(file: Path) -> None:
    run(file, "INSERT INTO t VALUES (4, -1, 'd')")
    over = session({"t": resolved(file, "t")})
    with pytest.raises(QueryError, match="overflow"):
        await rows(over, "SELECT sum(n) FROM t WHERE id IN (2, 4)")


def test_a_closed_read_ends_with_its_batch(file: Path) -> None:
    table = resolved(file, "t")
    found = SqliteReader().read(table, 'SELECT "id" FROM "t"', pa.schema([("id", pa.int64())]))
    batches = iter(found)
    assert next(batches).num_rows == 3
    found.close()
    assert next(batches, None) is None
    run(file, "DROP TABLE t")


def test_a_view_uses_no_function_that_could_do_harm(file: Path) -> None:
    run(file, "CREATE VIEW v AS SELECT load_extension('x') AS n")
    assert refused(file, "v").type == "invalid"
