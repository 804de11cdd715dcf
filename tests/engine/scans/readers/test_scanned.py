"""Kinds of tables that sources bring: which columns are read, and what ends a scan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_core.errors import ExecutionError
from caraway_core.tables import TableSpec, TableSplit
from caraway_engine.errors import failing
from caraway_engine.remote import opened
from caraway_engine.remote.opened import OpenedReads
from caraway_engine.scans.readers import scanned

SCHEMA = pa.schema([("id", pa.int64()), ("Word", pa.string()), ('o"d', pa.int64())])
ROWS = pa.table(
    {"id": [1, 2, None, 4], "Word": ["a", None, "c", "d"], 'o"d': [9, 8, 7, 6]}, schema=SCHEMA
)


@dataclass(frozen=True, slots=True)
class Spec(TableSpec):
    schema: pa.Schema


@dataclass
class Scan:
    batches: Sequence[pa.RecordBatch]
    error: Exception | None
    closed: int = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield from self.batches
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed += 1


@dataclass
class Scanner:
    """Gives some rows in small batches, and remembers what was asked for."""

    rows: pa.Table = field(default_factory=lambda: ROWS)
    error: Exception | None = None
    asked: list[list[str]] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)

    def scan(self, table: Any, splits: Sequence[TableSplit], columns: Sequence[str]) -> Scan:
        self.asked.append(list(columns))
        batches = self.rows.select(list(columns)).to_batches(max_chunksize=2)
        self.scans.append(Scan(batches, self.error))
        return self.scans[-1]


def query(scanner: Scanner, sql: str, rows: pa.Table = ROWS) -> list[dict[str, Any]]:
    context = SessionContext(SessionConfig().with_target_partitions(2))
    context.register_table("t", scanned.read(Spec(rows.schema), scanner))
    found: list[dict[str, Any]] = context.sql(sql).to_arrow_table().to_pylist()
    return found


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT * FROM t", ["id", "Word", 'o"d']),
        ("SELECT id FROM t", ["id"]),
        ('SELECT "o""d", id FROM t', ["id", 'o"d']),
        ("SELECT id FROM t WHERE \"Word\" = 'a'", ["id", "Word"]),
        ("SELECT count(*) AS n FROM t", ["id"]),
        ('SELECT count(*) AS n FROM t WHERE "o""d" > 7', ['o"d']),
        ("SELECT 1 AS one FROM t", ["id"]),
        ("SELECT id + 1 AS more FROM t WHERE id IS NOT NULL", ["id"]),
        ("SELECT \"Word\" FROM t WHERE upper(\"Word\") = 'C'", ["Word"]),
        ("SELECT id FROM t WHERE id > 1 AND \"Word\" IS NULL OR \"o\"\"d\" = 6",
         ["id", "Word", 'o"d']),
    ],
)  # fmt: skip
def test_only_columns_that_are_needed_are_read(sql: str, columns: list[str]) -> None:
    scanner = Scanner()
    found = query(scanner, sql)
    context = SessionContext()
    context.from_arrow(ROWS, name="t")
    wanted = context.sql(sql).to_arrow_table().to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, wanted))
    assert scanner.asked == [columns]
    assert [each.closed for each in scanner.scans] == [1]


def test_a_table_that_is_read_twice_is_scanned_twice() -> None:
    scanner = Scanner()
    sql = "SELECT a.id FROM t a JOIN t b ON a.id = b.id ORDER BY 1"
    assert query(scanner, sql) == [{"id": 1}, {"id": 2}, {"id": 4}]
    assert len(scanner.scans) == 2
    assert all(each.closed == 1 for each in scanner.scans)


def test_a_table_of_no_rows_and_of_no_batches() -> None:
    for rows in (ROWS.slice(0, 0), pa.Table.from_batches([], SCHEMA)):
        scanner = Scanner(rows)
        assert query(scanner, "SELECT * FROM t", rows) == []
        assert query(scanner, "SELECT count(*) AS n FROM t", rows) == [{"n": 0}]


def test_an_error_is_that_of_the_source_and_the_scan_is_closed() -> None:
    scanner = Scanner(error=ExecutionError("the source is away"))
    with pytest.raises(Exception, match="RemoteFailure") as caught:
        query(scanner, "SELECT max(id) AS m FROM t")
    assert failing.found(str(caught.value)) is scanner.error
    assert [each.closed for each in scanner.scans] == [1]


def test_a_limit_ends_the_scan() -> None:
    many = pa.table({"id": range(100_000)})
    scanner = Scanner(many)
    assert len(query(scanner, "SELECT id FROM t LIMIT 3", many)) == 3
    for each in scanner.scans:
        assert each.closed == 1


def test_a_plan_that_was_left_reads_nothing() -> None:
    scanner, reads = Scanner(), OpenedReads()
    context = SessionContext()
    context.register_table("t", scanned.read(Spec(SCHEMA), scanner))
    with opened.noted(reads):
        stream = context.sql("SELECT id FROM t").execute_stream()
    reads.close()
    assert sum(batch.to_pyarrow().num_rows for batch in stream) == 0


def test_what_is_open_is_closed_with_its_plan() -> None:
    scanner, reads = Scanner(), OpenedReads()
    context = SessionContext()
    context.register_table("t", scanned.read(Spec(SCHEMA), scanner))
    with opened.noted(reads):
        stream = context.sql("SELECT id FROM t").execute_stream()
    assert next(iter(stream)).to_pyarrow().num_rows > 0
    reads.close()
    assert scanner.scans[0].closed >= 1
