"""Files of DuckDB are open while statements use them, for reading and for writing in turn."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from caraway_plugins.sources.duckdb import attached


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    file = tmp_path / "numbers.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE numbers AS SELECT 1 AS id")
    yield str(file)
    if (kept := attached._kept.pop(str(file), None)) is not None:
        kept.close()


def count(path: str) -> int:
    with duckdb.connect(path) as connection:
        (found,) = connection.execute("SELECT count(*) FROM numbers").fetchall()
    return int(found[0])


def test_others_may_write_once_no_statement_reads(path: str) -> None:
    file = attached.taken(path)
    cursor = file.cursor()
    assert cursor.execute("SELECT id FROM numbers").fetchall() == [(1,)]
    file.leave(cursor)
    with duckdb.connect(path) as other:
        other.execute("INSERT INTO numbers VALUES (2)")
    assert count(path) == 2


def test_a_statement_that_reads_cannot_write(path: str) -> None:
    file = attached.taken(path)
    cursor = file.cursor()
    with pytest.raises(duckdb.Error, match="read-only"):
        cursor.execute("INSERT INTO numbers VALUES (2)")
    file.leave(cursor)


def test_a_statement_that_writes_follows_one_that_read(path: str) -> None:
    file = attached.taken(path)
    file.leave(file.cursor())
    file = attached.taken(path)
    cursor = file.cursor(is_writing=True)
    cursor.execute("INSERT INTO numbers VALUES (2)")
    file.leave(cursor)
    assert count(path) == 2


def test_one_duckdb_serves_all_statements_of_a_file(path: str) -> None:
    first, second = attached.taken(path), attached.taken(path)
    assert first is second and first.users == 2
    one, other = first.cursor(), second.cursor()
    first.leave(one)
    assert other.execute("SELECT id FROM numbers").fetchall() == [(1,)]
    second.leave(other)
    assert first.users == 0


def test_no_other_file_can_be_reached(path: str, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a\n1\n")
    file = attached.taken(path)
    cursor = file.cursor()
    with pytest.raises(duckdb.PermissionException):
        cursor.execute(f"SELECT * FROM '{tmp_path / 'other.csv'}'")
    file.leave(cursor)
