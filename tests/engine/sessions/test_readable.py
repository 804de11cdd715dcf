"""A statement that is limited to some tables reads no others, however it is written."""

from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import QueryError, QueryForbiddenError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.tables import TableSpec
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

READABLE = frozenset(map(TableName, ("known", "shown", "sales.known")))


@pytest.fixture
def limited() -> Session:
    tables: dict[str, TableSpec | str] = {
        "known": memory(x=[1, 2]),
        "secret": memory(y=[9]),
        "sales.known": memory(z=[5]),
        "sales.secret": memory(z=[6]),
        "shown": "SELECT y + 1 AS w FROM secret",
        "hidden": "SELECT * FROM known",
    }
    return session(tables, {"task_history": lambda _viewer: pa.table({"q": [1]})})


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT sum(x) AS v FROM known", 3),
        ("SELECT w AS v FROM shown", 10),
        ("SELECT z AS v FROM sales.known", 5),
        ("SELECT count(*) AS v FROM known JOIN sales.known ON true", 2),
        ("SELECT sum(value) AS v FROM generate_series(1, 3)", 6),
        ("SELECT 7 AS v", 7),
        ("WITH secret AS (SELECT 4 AS v) SELECT v FROM secret", 4),
    ],
)
async def test_it_reads_what_was_named_for_it(limited: Session, sql: str, expected: int) -> None:
    assert await rows(limited, sql, readable=READABLE) == [{"v": expected}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM secret",
        'SELECT * FROM "caraway"."public"."secret"',
        "SELECT * FROM sales.secret",
        "SELECT * FROM hidden",
        "SELECT * FROM (SELECT * FROM secret) AS shown",
        "WITH shown AS (SELECT * FROM secret) SELECT * FROM shown",
        "SELECT * FROM known WHERE x IN (SELECT y FROM secret)",
        "SELECT (SELECT max(y) FROM secret)",
        "SELECT * FROM known WHERE EXISTS (SELECT 1 FROM secret WHERE y = x)",
        "SELECT * FROM known, LATERAL (SELECT * FROM secret) AS t",
        "SELECT x FROM known UNION ALL SELECT y FROM secret",
        "EXPLAIN ANALYZE SELECT * FROM secret",
        "DESCRIBE secret",
    ],
)
async def test_other_tables_do_not_exist_for_it(limited: Session, sql: str) -> None:
    with pytest.raises(TableNotFoundError) as caught:
        await rows(limited, sql, readable=READABLE)
    known = caught.value.message.partition("Known tables")[2]
    assert "secret" not in known and "hidden" not in known


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM runtime.task_history",
        "SELECT table_name FROM information_schema.tables",
        "SHOW TABLES",
        "SHOW ALL",
    ],
)
async def test_it_lists_nothing(limited: Session, sql: str) -> None:
    with pytest.raises(QueryForbiddenError, match="limited to the datasets"):
        await rows(limited, sql, readable=READABLE)


async def test_limits_do_not_pass_from_one_statement_to_another(limited: Session) -> None:
    async def outcome(readable: Any) -> Any:
        try:
            return await rows(limited, "SELECT y FROM secret", readable=readable)
        except QueryError as exc:
            return type(exc)

    everything = [{"y": 9}]
    assert await outcome(None) == everything
    assert await outcome(READABLE) is TableNotFoundError
    assert await outcome(frozenset()) is TableNotFoundError
    assert await outcome(None) == everything
