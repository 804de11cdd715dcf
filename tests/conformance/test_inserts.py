"""Each writable database inserts all rows of an INSERT, or none, and says which."""

import asyncio
import itertools
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.loading import registry
from caraway_core.loading.declarations import DatabaseReader
from caraway_core.statements import Statement
from caraway_core.tables import MemoryTable
from caraway_engine.sessions.sessions import Session
from tests.conformance.written_databases import (
    KINDS,
    LAKES,
    TABLE,
    Kind,
    create,
    kind,
    mariadb_server,
    of,
    write,
)
from tests.kit.engine import rows

__all__ = ["kind", "mariadb_server"]

TEXTS = (
    "", " ", "a", "it's", '"', "\\", "\\N", "\\.", "a\n\\.\nb", "a\tb\r\n", "%s", "%(x)s", "NULL",
    "null", "${x}", "');DROP TABLE t;--", "\\'; DROP TABLE t; --", "é", "\U0001f600", "x" * 70_000,
    None,
)  # fmt: skip
MOMENT = datetime(2024, 2, 28, 12, 30, 15, 123_456)
ROWS = pa.table({
    "id": pa.array(range(len(TEXTS)), pa.int64()),
    "t": pa.array(TEXTS, pa.string()),
    "i": pa.array(itertools.islice(itertools.cycle([2**63 - 1, -(2**63), 0, None]), len(TEXTS)),
                  pa.int64()),
    "s": pa.array([n - 9 for n in range(len(TEXTS))], pa.int16()),
    "f": pa.array([0.1 * n if n % 3 else None for n in range(len(TEXTS))], pa.float64()),
    "m": pa.array([Decimal(n - 9) / 4 for n in range(len(TEXTS))], pa.decimal128(15, 2)),
    "b": pa.array([None if n % 3 == 0 else n % 2 == 0 for n in range(len(TEXTS))], pa.bool_()),
    "d": pa.array([date(1970 + n * 9, 1, n + 1) for n in range(len(TEXTS))], pa.date32()),
    "at": pa.array([MOMENT.replace(year=1980 + n) for n in range(len(TEXTS))], pa.timestamp("us")),
    "z": pa.array([MOMENT.replace(year=1980 + n, tzinfo=UTC) for n in range(len(TEXTS))],
                  pa.timestamp("us", "UTC")),
})  # fmt: skip
ODD = "Select ${x}; --'"


@pytest.fixture(params=sorted(KINDS.keys() - LAKES))
def connector(request: pytest.FixtureRequest) -> str:
    """A database. INSERT into tables of files is in `test_delta_writer.py`."""
    return str(request.param)


@pytest.fixture
def over(kind: Kind) -> Session:
    """A session over a table `t` that has one row."""
    create(kind, "t", "id BIGINT PRIMARY KEY, n INTEGER NOT NULL DEFAULT 7, v VARCHAR(5)")
    kind.run("INSERT INTO t (id) VALUES (1)")
    return of(kind, "t")


async def refused(over: Session, sql: str) -> QueryError:
    before = await rows(over, "SELECT count(*) AS n FROM t")
    with pytest.raises(QueryError) as caught:
        await write(over, sql)
    assert "hunter2" not in caught.value.message
    assert await rows(over, "SELECT count(*) AS n FROM t") == before
    return caught.value


def test_every_writer_has_a_class_here() -> None:
    declared = {name: registry.REMOTE_READERS.declared(name) for name in registry.REMOTE_READERS}
    writable = {name for name, each in declared.items() if getattr(each, "is_writable", False)}
    assert KINDS.keys() | LAKES == writable
    assert all(isinstance(each, DatabaseReader) for each in declared.values())


async def test_all_values_arrive(kind: Kind) -> None:
    kind.load("values", ROWS.slice(0, 0))
    over = of(kind, "values", m=MemoryTable(ROWS.schema, ROWS))
    assert await write(over, "INSERT INTO t SELECT * FROM m") == ROWS.num_rows
    assert await rows(over, "SELECT * FROM t ORDER BY id") == ROWS.to_pylist()


async def test_columns_that_are_left_out_have_their_defaults(over: Session) -> None:
    assert await write(over, "INSERT INTO t (v, id) VALUES ('x', 2), (NULL, 3)") == 2
    assert await rows(over, "SELECT * FROM t WHERE id > 1 ORDER BY id") == [
        {"id": 2, "n": 7, "v": "x"}, {"id": 3, "n": 7, "v": None},
    ]  # fmt: skip
    error = await refused(over, "INSERT INTO t VALUES (4, NULL, 'y')")
    assert isinstance(error, InvalidQueryError)


async def test_names_are_taken_as_they_are(kind: Kind) -> None:
    names = ['a"b', "a`b", "%s", "values (1)", "select", "x'; DROP TABLE t; --", "Ü", "a, b"]
    create(kind, ODD, ", ".join(f"{kind.quoted(each)} INTEGER" for each in names))
    over = of(kind, ODD)
    listed = ", ".join('"' + each.replace('"', '""') + '"' for each in reversed(names))
    numbers = ", ".join(map(str, range(len(names))))
    assert await write(over, f"INSERT INTO t ({listed}) VALUES ({numbers})") == 1
    assert await rows(over, "SELECT * FROM t") == [
        {each: number for number, each in zip(range(7, -1, -1), names, strict=True)}
    ]


async def test_values_are_no_sql(over: Session) -> None:
    for number, hostile in enumerate(("');--", "\\'--", '"; --', "\\", "'||'")):
        sql = "INSERT INTO t (id, v) VALUES ($1, $2)"
        assert await write(over, sql, parameters={"1": 10 + number, "2": hostile}) == 1
        found = await rows(over, f"SELECT v FROM t WHERE id = {10 + number}")
        assert found == [{"v": hostile}]


REFUSED = [
    "INSERT INTO t (id) SELECT value FROM generate_series(90000, 0, -1)",
    "INSERT INTO t (id, n) SELECT value, 100 / (150000 - value) FROM generate_series(2, 150000)",
    "INSERT INTO t (id, n) SELECT value, CAST(value * 99999 AS INT) FROM generate_series(2, 30000)",
    "INSERT INTO t (id) VALUES (2), (3), (2)",
    "INSERT INTO t (id, n) VALUES (2, NULL)",
]  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
async def test_a_statement_that_fails_leaves_no_row(over: Session, sql: str) -> None:
    assert await refused(over, sql)


async def test_rows_of_the_table_itself_are_inserted(over: Session) -> None:
    for count in (1, 2, 4):
        assert await write(over, f"INSERT INTO t SELECT id + {count}, n + 1, v FROM t") == count
    assert await rows(over, "SELECT count(*) AS n, sum(n) AS s FROM t") == [{"n": 8, "s": 68}]


async def test_many_rows_are_inserted(over: Session) -> None:
    sql = "INSERT INTO t (id, v) SELECT value, 'v' FROM generate_series(2, 60000)"
    assert await write(over, sql) == 59_999
    (found,) = await rows(over, "SELECT count(*) AS n, sum(id) AS s FROM t")
    assert found == {"n": 60_000, "s": 60_000 * 60_001 // 2}


async def test_no_rows_are_none(over: Session) -> None:
    assert await write(over, "INSERT INTO t SELECT * FROM t WHERE id > 99") == 0


async def test_a_table_that_is_gone_is_an_error(kind: Kind, over: Session) -> None:
    kind.run("DROP TABLE t")
    with pytest.raises(QueryError, match="no row was inserted"):
        await write(over, "INSERT INTO t (id) VALUES (2)")


async def test_a_stopped_statement_leaves_no_row(over: Session) -> None:
    sql = "INSERT INTO t (id) SELECT value FROM generate_series(2, 100000000)"
    stream = over.start(Statement(sql, {}, writable=frozenset({TABLE})))
    reading = asyncio.ensure_future(anext(aiter(stream)))
    await asyncio.sleep(0.3)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await rows(over, "SELECT count(*) AS n FROM t") == [{"n": 1}]
    assert await write(over, "INSERT INTO t (id) VALUES (-1)") == 1
    assert await rows(over, "SELECT count(*) AS n FROM t") == [{"n": 2}]


async def test_explain_inserts_nothing(over: Session) -> None:
    found = await rows(over, "EXPLAIN INSERT INTO t (id) VALUES (2)", writable=frozenset({TABLE}))
    assert found
    assert await rows(over, "SELECT count(*) AS n FROM t") == [{"n": 1}]
