"""Kinds of tables that sources bring: which columns are read, and what ends a scan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_core.errors import ExecutionError
from caraway_core.tables import TableSpec
from caraway_core.tables.scanners import RowRequest
from caraway_engine.errors import failing
from caraway_engine.remote import natively, opened
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
    """Returns some rows in small batches, and records the requested columns."""

    rows: pa.Table = field(default_factory=lambda: ROWS)
    error: Exception | None = None
    asked: list[list[str]] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    requests: list[RowRequest] = field(default_factory=list)

    def scan(self, table: Any, request: RowRequest) -> Scan:
        self.asked.append(list(request.columns))
        self.requests.append(request)
        batches = self.rows.select(list(request.columns)).to_batches(max_chunksize=2)
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


TYPED = pa.table(
    {
        "i": pa.array([1, 2, None], pa.int32()),
        "s": ["a", "b", None],
        "b": [True, False, None],
        "d": pa.array([Decimal("1.50"), None, Decimal("-2.00")], pa.decimal128(9, 2)),
        "day": [date(2024, 2, 29), date(1970, 1, 1), None],
        "f": [0.0, float("nan"), None],
        "ns": pa.array([1, 2, None], pa.timestamp("ns")),
    }
)


@pytest.mark.parametrize(
    ("condition", "filters", "limit"),
    [
        ("i = 2", [("i", "=", 2)], 1),
        ("2 < i", [("i", ">", 2)], 1),
        ("i <> 2 AND s >= 'b'", [("i", "<>", 2), ("s", ">=", "b")], 1),
        ("i IN (1, 2, 3, 4)", [("i", "in", (1, 2, 3, 4))], 1),
        ("b", [("b", "=", True)], 1),
        ("NOT b", [("b", "=", False)], 1),
        ("s IS NULL", [("s", "is null", None)], 1),
        ("s IS NOT NULL", [("s", "is not null", None)], 1),
        ("d = 1.50", [("d", "=", Decimal("1.50"))], 1),
        ("day > DATE '2000-01-01'", [("day", ">", date(2000, 1, 1))], 1),
        ("f = 0", [], None),
        ("f IS NULL AND i = 1", [("i", "=", 1)], None),
        ("i = 1 OR s = 'a'", [], None),
        ("i = 1 AND i + 1 = 2", [("i", "=", 1)], None),
        ("ns = TIMESTAMP '1970-01-01T00:00:00.000000001'", [], None),
    ],
)
def test_filters_reach_the_source_and_are_applied_again(
    condition: str, filters: list[tuple[str, str, object]], limit: int | None
) -> None:
    scanner = Scanner(TYPED)
    sql = f"SELECT i FROM t WHERE {condition}"
    context = SessionContext()
    context.from_arrow(TYPED, name="t")
    expected = context.sql(sql).to_arrow_table().to_pylist()
    assert sorted(map(str, query(scanner, sql, TYPED))) == sorted(map(str, expected))
    (request,) = scanner.requests
    assert [(each.column, each.operator, each.value) for each in request.filters] == filters
    assert request.limit is None

    started(limited := Scanner(TYPED), f"{sql} LIMIT 1")
    (request,) = limited.requests
    assert request.limit == limit


def started(scanner: Scanner, sql: str) -> int:
    """Run a statement as sessions do, and return its number of rows."""
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.register_table("t", scanned.read(Spec(scanner.rows.schema), scanner))
    with opened.noted(OpenedReads()):
        stream = natively.start(context.sql(sql), lambda: context)
    return sum(batch.to_pyarrow().num_rows for batch in stream)


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        ("SELECT * FROM t LIMIT 2", 2),
        ("SELECT i FROM t WHERE i > 0 LIMIT 1 OFFSET 1", 2),
        ("SELECT i + 1 FROM (SELECT i FROM t LIMIT 3)", 3),
        ("SELECT i FROM t", None),
        ("SELECT i FROM t ORDER BY i LIMIT 1", None),
        ("SELECT DISTINCT b FROM t LIMIT 1", None),
        ("SELECT i FROM t WHERE i = (SELECT max(i) FROM t) LIMIT 1", None),
        ("SELECT a.i FROM t a JOIN t b ON a.i = b.i LIMIT 1", None),
        ("SELECT i FROM t UNION ALL SELECT i FROM t LIMIT 1", None),
        ("SELECT (SELECT max(i) FROM t) AS m FROM (VALUES (1)) LIMIT 1", None),
        ("SELECT count(*) FROM t LIMIT 1", None),
    ],
)
def test_a_limit_reaches_the_only_scan(sql: str, limit: int | None) -> None:
    scanner = Scanner(TYPED)
    expected = SessionContext()
    expected.from_arrow(TYPED, name="t")
    assert started(scanner, sql) == expected.sql(sql).to_arrow_table().num_rows
    assert {each.limit for each in scanner.requests} == {limit}


def test_a_limit_above_filters_that_stay_in_the_plan_does_not_reach_the_scan() -> None:
    scanner = Scanner(TYPED)
    assert started(scanner, "SELECT i FROM t WHERE (i = 2 OR i = 5) AND random() < 2 LIMIT 1") == 1
    assert {each.limit for each in scanner.requests} == {None}


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


def test_fields_of_null_structs_are_null() -> None:
    rows = pa.table({"id": [1, 2], "s": pa.array([{"a": 1}, None])})
    found = query(Scanner(rows), "SELECT id, s['a'] AS a FROM t ORDER BY id", rows)
    assert found == [{"id": 1, "a": 1}, {"id": 2, "a": None}]
    assert query(Scanner(rows), "SELECT id FROM t WHERE s['a'] IS NULL", rows) == [{"id": 2}]
