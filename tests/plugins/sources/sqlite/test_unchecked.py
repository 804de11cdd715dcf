"""Values that the reader checks in place of SQLite: both take and refuse the same ones."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from caraway_core.tables import RemoteTable
from caraway_plugins.sources.sqlite import reader
from caraway_plugins.sources.sqlite.reader import SqliteReader
from tests.kit.engine import rows, session
from tests.kit.remote import watched
from tests.kit.sqlite_files import resolved, run

HOSTILE = (
    "0", "1", "2", "-1", "255", "256", "2147483648", "9223372036854775807", "1.0", "1.5", "9e18",
    "9.3e18", "-9223372036854775808.0", "9007199254740993", "9e999", "1e-5", "''", "'1'", "'1.50'",
    "'a'", "'12:30'", "'2024-02-29'", "'2024-2-29'", "'2024-02-30'", "' 2024-02-2'",
    "'2024-02-29 '", "'0000-01-01'", "'-001-01-01'", "'2024-02-29T12'", "'2024-02-29 12:30:15.5'",
    "'2024-02-29 24:00:00'", "20240229", "2024.0229", "'a' || char(0) || 'b'", "x''", "x'00'",
    "CAST('2024-02-29' AS BLOB)", "CAST('1' AS BLOB)", "CAST(x'FF41' AS TEXT)",
)  # fmt: skip
TYPES = (
    "INTEGER", "TINYINT", "BOOLEAN", "REAL", "TEXT", "DATE", "DATETIME", "DOUBLE TEXT",
    "DOUBLE CHARACTER", "TIME", "DECIMAL(15,2)", "BLOB", "NUMERIC", "\u017fTEXT",
)  # fmt: skip
READ_UNCHECKED = frozenset(TYPES[:9])
SHAPES = {
    "table": ("CREATE TABLE one (id INT, x {})",),
    "strict": ("CREATE TABLE one (id INT, x {}) STRICT",),
    "view": ("CREATE TABLE kept (id INT, x)", "CREATE VIEW one (id, x) AS SELECT * FROM kept"),
    "converted": (
        "CREATE TABLE kept (id INT, x {})",
        "CREATE VIEW one AS SELECT id, x FROM kept UNION ALL SELECT id, 7 FROM kept WHERE id < 0",
    ),
    "generated": ("CREATE TABLE one (id INT, kept, x {} AS (kept))",),
    "stored": ("CREATE TABLE one (id INT, kept, x {} AS (kept) STORED)",),
}


@pytest.mark.parametrize(
    ("shape", "type_"),
    [
        *((shape, type_) for shape in SHAPES if shape != "strict" for type_ in TYPES),
        *(("strict", type_) for type_ in ("INTEGER", "REAL", "TEXT", "BLOB")),
    ],
)
def test_the_reader_takes_the_values_that_sqlite_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str, type_: str
) -> None:
    monkeypatch.setattr(reader, "_BATCH_ROWS", 2)
    file = tmp_path / "one.db"
    run(file, *(each.format(type_) for each in SHAPES[shape]))
    target = "kept" if shape in ("view", "converted") else "one"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"INSERT INTO {target} (id) VALUES (-1), (-1), (-1)")
        for number, value in enumerate(HOSTILE):
            with suppress(sqlite3.IntegrityError):  # A strict table refuses some.
                connection.execute(f"INSERT INTO {target} VALUES ({number}, {value})")
    table = resolved(file, "one")
    column = table.columns[-1]
    assert bool(column.unchecked) or type_ not in READ_UNCHECKED or shape != "table"
    for number, value in enumerate(HOSTILE):
        for where in (f"id = {number}", f"id IN (-1, {number})"):
            if column.unchecked:
                assert _read(table, column.unchecked, where) == _read(table, "x", where), value


def _read(table: RemoteTable, name: str, where: str) -> str:
    """Return the values of a column, or why they cannot be read."""
    schema = pa.schema([("x", table.columns[-1].type)])
    sql = f'SELECT "{name}" FROM "one" WHERE {where}'
    with closing(SqliteReader().read(table, sql, schema)) as found:
        try:
            return repr(pa.Table.from_batches(found, schema)["x"].combine_chunks().to_string())
        except QueryError as exc:
            return exc.message


async def test_defaults_have_the_types_of_their_columns(tmp_path: Path) -> None:
    file = tmp_path / "one.db"
    run(
        file,
        "CREATE TABLE one (id INT)",
        "INSERT INTO one VALUES (1)",
        "ALTER TABLE one ADD COLUMN s TEXT DEFAULT 5",
        "ALTER TABLE one ADD COLUMN f REAL DEFAULT 5",
    )
    over = session({"t": resolved(file, "one")})
    assert await rows(over, "SELECT s, f FROM t") == [{"s": "5", "f": 5.0}]


async def test_rows_are_read_unchecked_and_conditions_and_groups_are_not(tmp_path: Path) -> None:
    file = tmp_path / "one.db"
    run(file, "CREATE TABLE one (UNCHECKED0 INT, s TEXT)", "INSERT INTO one VALUES (1, 'a')")
    over = session({"t": resolved(file, "one")})
    with watched("sqlite") as sent:
        assert await rows(over, "SELECT s FROM t WHERE s > 'A'") == [{"s": "a"}]
        assert await rows(over, "SELECT s FROM t GROUP BY s") == [{"s": "a"}]
        assert await rows(over, "SELECT s FROM t ORDER BY s LIMIT 1") == [{"s": "a"}]
    assert sent == [
        'SELECT "unchecked_1" FROM "one" WHERE ("s" > \'A\')',
        'SELECT "s" FROM "one" GROUP BY "s"',
        'SELECT "unchecked_1" AS "answer0" FROM "one" ORDER BY "s" ASC NULLS LAST LIMIT 1',
    ]


@pytest.mark.parametrize("count", [999, 1000, 1999])
async def test_tables_of_many_columns_are_read(tmp_path: Path, count: int) -> None:
    file = tmp_path / "one.db"
    columns = ", ".join(f"c{number} INT" for number in range(count))
    run(file, f"CREATE TABLE one ({columns})", "INSERT INTO one (c0) VALUES (7)")
    table = resolved(file, "one")
    assert bool(table.columns[0].unchecked) == (count < 1000)
    assert await rows(session({"t": table}), "SELECT c0, c9 FROM t") == [{"c0": 7, "c9": None}]
