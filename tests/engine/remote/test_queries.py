"""Statements that a database answers in one piece, held against the engine over the same rows."""

import asyncio
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.tables import MemoryTable
from caraway_engine.remote import answers, words
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.queries import RemoteQuery
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import rows, session
from tests.kit.own_database import ROWS, Database, remote

O = '"o d""d"'  # noqa: E741
STATEMENTS = [
    "SELECT count(*) AS c FROM t",
    "SELECT count(*) AS c FROM t WHERE id > 100",
    "SELECT count(id) AS c, min(id) AS low, max(id) AS high FROM t WHERE n = 1",
    "SELECT min(id) AS low FROM t WHERE id > 100",
    "SELECT n, count(*) AS c FROM t GROUP BY n",
    "SELECT n FROM t GROUP BY n",
    "SELECT DISTINCT n FROM t",
    "SELECT DISTINCT n, id FROM t WHERE id IS NULL",
    "SELECT n, count(*) AS c FROM t WHERE id > 100 GROUP BY n",
    "SELECT n, count(*) AS c FROM t GROUP BY n HAVING count(*) > 3",
    "SELECT n + 1 AS m, max(id) AS high FROM t GROUP BY n + 1",
    f"SELECT n, count(*) FILTER (WHERE {O} > 5) AS c FROM t GROUP BY n",
    "SELECT count(DISTINCT n) AS c FROM t",
    "SELECT 1 AS one FROM (SELECT count(*) AS c FROM t) x",
    "SELECT 1 AS one FROM (SELECT count(*) AS c FROM t WHERE id > 100) x",
    "SELECT 1 AS one FROM (SELECT n FROM t GROUP BY n) x",
    "SELECT count(*) AS c FROM (SELECT DISTINCT n FROM t) x",
    "SELECT count(*) AS c FROM (SELECT n FROM t GROUP BY n) x WHERE n > 0",
    f"SELECT {O} FROM t ORDER BY {O} LIMIT 3",
    f"SELECT {O} FROM t ORDER BY {O} DESC LIMIT 3 OFFSET 2",
    f"SELECT id, {O} FROM t ORDER BY id DESC NULLS LAST, {O} LIMIT 4",
    f"SELECT id, {O} FROM t ORDER BY id NULLS FIRST, {O} LIMIT 4",
    f"SELECT {O} FROM t ORDER BY n, {O} LIMIT 100 OFFSET 10",
    f"SELECT {O} FROM t ORDER BY {O} LIMIT 0",
    f"SELECT {O} FROM t ORDER BY {O} LIMIT 2 OFFSET 100",
    f"SELECT {O} + 1 AS p FROM t WHERE n = 1 ORDER BY {O} LIMIT 2",
    f"SELECT count(*) AS c FROM (SELECT id FROM t ORDER BY {O} LIMIT 5) x",
    f"SELECT {O} FROM (SELECT {O} FROM t ORDER BY {O} LIMIT 5) x ORDER BY {O} DESC LIMIT 2",
    f"SELECT {O} FROM (SELECT {O} FROM t ORDER BY {O} LIMIT 5) x WHERE {O} > 2 ORDER BY 1",
    "SELECT n, c FROM (SELECT n, count(*) AS c FROM t GROUP BY n) x ORDER BY c DESC, n LIMIT 2",
    "SELECT n, max(c) AS m FROM (SELECT n, id, count(*) AS c FROM t GROUP BY n, id) x GROUP BY n",
    "SELECT a.id FROM t a JOIN t b ON a.id = b.n WHERE a.id > 0",
    "SELECT id FROM t WHERE id IN (SELECT n FROM t)",
    "SELECT id FROM t WHERE id = (SELECT max(id) FROM t)",
    "SELECT count(*) AS c FROM t UNION ALL SELECT max(id) FROM t",
    "SELECT n, count(*) AS c FROM t GROUP BY ROLLUP (n)",
    "SELECT id, count(*) OVER (PARTITION BY n) AS c FROM t WHERE id > 2",
    "SELECT CASE WHEN n = 1 THEN 'one' ELSE 'other' END AS w, count(*) AS c FROM t GROUP BY 1",
]


def local() -> Session:
    return session({"t": MemoryTable(ROWS.schema, ROWS)})


@pytest.fixture
def database() -> Database:
    made = Database()
    answers.use("itself", made)
    return made


def read(of: Session, sql: str) -> list[str]:
    found: list[dict[str, Any]] = asyncio.run(rows(of, sql))
    told = list(map(str, found))
    outermost = sql.rpartition(")")[2]
    return told if "ORDER BY" in outermost else sorted(told)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_is_answered_as_by_the_engine(database: Database, sql: str) -> None:
    over = session({"t": remote()})
    wanted = read(local(), sql)
    assert read(over, sql) == wanted
    # Once more, over the plan that is kept.
    assert read(over, sql) == wanted


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("SELECT count(*) AS c FROM t", "count(*)"),
        ("SELECT n, count(*) AS c FROM t GROUP BY n", "GROUP BY"),
        (f"SELECT {O} FROM t ORDER BY {O} LIMIT 3 OFFSET 2", "LIMIT 5"),
        ("SELECT id FROM t WHERE n = 1", "WHERE"),
    ],
)
def test_the_database_does_what_it_can(database: Database, sql: str, part: str) -> None:
    read(session({"t": remote()}), sql)
    (sent,) = database.sent
    assert part.lower() in sent.lower()


ID = Term('"id"', "int", digits=19)
TEST = Term('("id" > 1)', "bool")
COUNT = Term("count(*)", "int", digits=19)
TABLE = remote()
START = RemoteQuery(TABLE, "t", (ID,))


@pytest.mark.parametrize(
    "query",
    [
        START.grouped([ID], [COUNT]),
        START.grouped([], [COUNT]),
        START.limited([], 3, 0),
        START.limited(['"id"'], None, 2),
    ],
)
def test_nothing_goes_below_a_group_or_a_limit(query: RemoteQuery) -> None:
    with pytest.raises(NotPushableError):
        query.filtered(TEST)
    with pytest.raises(NotPushableError):
        query.prefiltered(TEST)
    with pytest.raises(NotPushableError):
        query.grouped([ID], [COUNT])


@pytest.mark.parametrize(
    "test", [Term('"id"', "int"), Term('"id"', ""), Term("x", "bool", is_exact=False)]
)
def test_only_exact_conditions_filter(test: Term) -> None:
    with pytest.raises(NotPushableError):
        START.filtered(test)


def test_a_limit_of_a_limit_is_left_to_the_engine() -> None:
    with pytest.raises(NotPushableError, match="a limit of a limit"):
        START.limited(['"id"'], 3, 0).limited([], 2, 0)


@pytest.mark.parametrize("key", [Term("x", ""), Term("x", "double"), Term("x", "bool", False)])
def test_keys_that_compare_otherwise_make_no_groups(key: Term) -> None:
    with pytest.raises(NotPushableError, match="a grouping"):
        START.grouped([key], [COUNT])


def test_a_group_of_nothing_is_left_to_the_engine() -> None:
    """It is one row, and a statement without a key and an aggregate has all rows."""
    with pytest.raises(NotPushableError, match="a group of nothing"):
        START.grouped([], [])


def test_the_parts_of_a_statement_come_in_their_order() -> None:
    schema = pa.schema([("id", pa.int64())])
    sent = words.of_reader("itself").sent(ID, pa.int64())
    made = START.filtered(TEST).prefiltered(Term("p", "bool", is_exact=False))
    assert made.sql(schema) == f'SELECT {sent} FROM t WHERE ("id" > 1) AND p'
    last = made.grouped([ID], []).limited(['"id"'], 3, 4)
    assert last.sql(schema) == (
        f'SELECT {sent} AS "answer0" FROM t WHERE ("id" > 1) AND p GROUP BY "id" ORDER BY "id" '
        "LIMIT 3 OFFSET 4"
    )
    assert last.is_reducing and not made.is_reducing
    assert START.selected([]).sql(pa.schema([])) == "SELECT TRUE FROM t"
    assert START.limited([], None, 0).sql(schema) == f"SELECT {sent} FROM t"
