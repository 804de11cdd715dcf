"""Changes of SQLite tables: their rows are found by the values that reads have."""

from pathlib import Path

import pytest

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.ids import TableName
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import rows, session
from tests.kit.sqlite_files import resolved, run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "written.db"


async def write(over: Session, sql: str) -> int:
    (found,) = await rows(over, sql, writable=frozenset({TableName("t")}))
    return int(found["count"])


async def test_no_collation_decides_which_rows_are_changed(file: Path) -> None:
    run(file, "CREATE TABLE t (name TEXT COLLATE NOCASE, note TEXT COLLATE RTRIM)",
        "INSERT INTO t VALUES ('a', 'x'), ('A', 'x '), ('b', 'y')")  # fmt: skip
    over = session({"t": resolved(file, "t")})
    assert await write(over, "UPDATE t SET note = 'z' WHERE name = 'a' AND note = 'x'") == 1
    assert await write(over, "DELETE FROM t WHERE name = 'B'") == 0
    assert await write(over, "DELETE FROM t WHERE note = 'x '") == 1
    assert await rows(over, "SELECT * FROM t") == [
        {"name": "a", "note": "z"}, {"name": "b", "note": "y"},
    ]  # fmt: skip


async def test_a_value_of_another_type_is_an_error_and_meets_no_condition(file: Path) -> None:
    run(file, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 5), (2, 'many')")  # fmt: skip
    over = session({"t": resolved(file, "t")})
    for sql in ("DELETE FROM t WHERE n > 3", "UPDATE t SET n = n + 1"):
        with pytest.raises(QueryError, match="no row was"):
            await write(over, sql)
    assert await rows(over, "SELECT count(*) AS n FROM t") == [{"n": 2}]
    assert await write(over, "DELETE FROM t WHERE id = 2") == 1
    assert await write(over, "UPDATE t SET n = n + 1") == 1
    assert await rows(over, "SELECT n FROM t") == [{"n": 6}]


async def test_columns_may_have_the_names_of_row_numbers(file: Path) -> None:
    run(file, 'CREATE TABLE t (rowid TEXT, "_ROWID_" TEXT)', "INSERT INTO t VALUES ('1', '2')")
    over = session({"t": resolved(file, "t")})
    assert await write(over, "UPDATE t SET rowid = 'x' WHERE rowid = '1'") == 1
    assert await rows(over, "SELECT rowid FROM t") == [{"rowid": "x"}]
    run(file, "ALTER TABLE t ADD COLUMN oid TEXT")
    with pytest.raises(InvalidQueryError, match="whose rows have no number"):
        await write(session({"t": resolved(file, "t")}), "DELETE FROM t")


@pytest.mark.parametrize("made", ["CREATE TABLE t (id INT PRIMARY KEY) WITHOUT ROWID",
                                  "CREATE VIEW t AS SELECT 1 AS id"])  # fmt: skip
async def test_what_has_no_rows_of_its_own_is_refused(file: Path, made: str) -> None:
    run(file, made)
    with pytest.raises(InvalidQueryError, match="a view, or a table whose rows have no number"):
        await write(session({"t": resolved(file, "t")}), "DELETE FROM t")
