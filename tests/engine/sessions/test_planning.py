"""Statements that are planned again and again read as those that are planned once."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import (
    CarawayError,
    InvalidQueryError,
    ParametersError,
    QueryError,
    QueryForbiddenError,
    SourceNotReadError,
    TableNotFoundError,
)
from caraway_core.ids import PrincipalId, TableName
from caraway_core.statements import Statement
from caraway_core.tables import MemoryTable, TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, snapshot

ALICE, BOB = PrincipalId("alice"), PrincipalId("bob")
T, U, V = TableName("t"), TableName("u"), TableName("v")
TABLES: Mapping[str, TableSpec | str] = {
    "t": memory(x=[3, 1, None, 2], s=["c", "a", None, "b'"]),
    "u": memory(x=[1, 2, 9]),
    "v": "SELECT x + 1 AS y FROM t",
    "w": "SELECT y FROM v WHERE y > 2",
}


def whose(viewer: PrincipalId | None) -> pa.Table:
    return pa.table({"who": [str(viewer)]})


def made() -> Session:
    found = Session(EngineSettings(2), snapshot(TABLES, {"whose": whose}))
    assert found.install(None) == {}
    return found


@pytest.fixture(scope="module")
def warm() -> Session:
    """A session that has planned every statement of these tests before."""
    found = made()
    for sql, parameters in STATEMENTS:
        for viewer in (None, ALICE, BOB):
            told(found, sql, parameters=parameters, viewer=viewer)
    return found


def told(of: Session, sql: str, **options: Any) -> object:
    """The rows of a statement, or its error."""
    try:
        found = asyncio.run(rows(of, sql, **options))
        return found if "ORDER BY" in sql else sorted(map(str, found))
    except CarawayError as exc:
        return type(exc), exc.message


STATEMENTS: list[tuple[str, Mapping[str, Any]]] = [
    ("SELECT x FROM t ORDER BY x", {}),
    ("SELECT x FROM t ORDER BY x -- a comment", {}),
    ("SELECT x FROM t WHERE x = $1", {"1": 1}),
    ("SELECT x FROM t WHERE x = $1", {"1": 2}),
    ("SELECT x FROM t WHERE x = $1", {"1": None}),
    ("SELECT x FROM t WHERE x = $1", {"1": "2"}),
    ("SELECT x FROM t WHERE x = $1", {"1": 2.5}),
    ("SELECT s FROM t WHERE s = $who", {"who": "b'"}),
    ("SELECT s FROM t WHERE s = :who", {"who": "' OR true --"}),
    ("SELECT $a AS a", {"a": 1}),
    ("SELECT $a AS a", {"a": True}),
    ("SELECT $a AS a", {"a": "1"}),
    ("SELECT $a AS a", {"a": 1.0}),
    ("SELECT $a AS a", {"a": None}),
    ("SELECT $a AS a", {"a": [1, 2]}),
    ("SELECT x FROM t LIMIT $n", {"n": 2}),
    ("SELECT x FROM t ORDER BY x LIMIT $n OFFSET $o", {"n": 1, "o": 1}),
    ("SELECT ? + ? AS s", {"1": 1, "2": 2}),
    ("SELECT y FROM v ORDER BY y", {}),
    ("SELECT y FROM w ORDER BY y", {}),
    ("SELECT who FROM runtime.whose", {}),
    ("SELECT count(*) AS n FROM t, u", {}),
    ("SELECT t.x FROM t JOIN u ON t.x < u.x ORDER BY 1", {}),
    ("SELECT t.x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.x) ORDER BY 1", {}),
    ("SELECT 1 / 0 AS z", {}),
    ("SELECT nope FROM t", {}),
    ("SELECT x FROM nothing", {}),
    ("SELEC x", {}),
    ("SELECT $1", {}),
    ("SELECT x FROM t", {"1": 1}),
    ("INSERT INTO t VALUES (1, 'x')", {}),
    ("EXPLAIN SELECT x FROM t WHERE x = 1", {}),
    ("SHOW TABLES", {}),
    ("VALUES (1), (2)", {}),
    ("", {}),
]


@pytest.mark.parametrize(("sql", "parameters"), STATEMENTS)
@pytest.mark.parametrize("viewer", [None, ALICE])
def test_a_plan_that_is_kept_answers_as_one_that_is_new(
    warm: Session, sql: str, parameters: Mapping[str, Any], viewer: PrincipalId | None
) -> None:
    new = told(made(), sql, parameters=parameters, viewer=viewer)
    assert told(warm, sql, parameters=parameters, viewer=viewer) == new


async def test_rows_of_the_runtime_are_those_of_each_viewer(warm: Session) -> None:
    for viewer in (ALICE, BOB, None, ALICE):
        found = await rows(warm, "SELECT who FROM runtime.whose", viewer=viewer)
        assert found == [{"who": str(viewer)}]


@pytest.mark.parametrize("function", ["random()", "now()", "uuid()"])
async def test_what_changes_from_call_to_call_is_computed_each_time(
    warm: Session, function: str
) -> None:
    sql = f"SELECT CAST({function} AS VARCHAR) AS r"
    assert len({str(await rows(warm, sql)) for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("sql", "readable", "words"),
    [
        ("SELECT * FROM u", {"t"}, "u"),
        ("SELECT * FROM t WHERE x IN (SELECT x FROM u)", {"t"}, "u"),
        ("SELECT * FROM t UNION ALL SELECT x, 'a' FROM u", {"t"}, "u"),
        ("WITH t AS (SELECT * FROM u) SELECT * FROM t", {"t"}, "u"),
        ("SELECT * FROM v", {"t"}, "v"),
        ("SELECT * FROM w", {"v"}, "w"),
        ("SELECT * FROM runtime.whose", {"t"}, "whose"),
        ("SELECT * FROM information_schema.tables", {"t"}, ""),
        ("SELECT * FROM caraway.public.u", {"t"}, "u"),
        ("EXPLAIN SELECT * FROM u", {"t"}, "u"),
        ("SELECT * FROM t", set(), "t"),
    ],
)
async def test_a_statement_reads_no_other_table_than_it_may(
    warm: Session, sql: str, readable: set[str], words: str
) -> None:
    await rows(warm, sql)  # It was planned without limits before.
    limits = frozenset(map(TableName, readable))
    with pytest.raises((QueryForbiddenError, TableNotFoundError)) as caught:
        await rows(warm, sql, readable=limits)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("sql", "readable"),
    [
        ("SELECT * FROM v", {"v"}),
        ("SELECT * FROM w", {"w"}),
        ("SELECT * FROM t JOIN u ON t.x = u.x", {"t", "u"}),
        ("SELECT value FROM generate_series(1, 3)", set()),
        ("SELECT 1 AS one", set()),
    ],
)
async def test_a_view_that_may_be_read_reads_what_it_reads(
    warm: Session, sql: str, readable: set[str]
) -> None:
    limits = frozenset(map(TableName, readable))
    assert await rows(warm, sql, readable=limits) == await rows(warm, sql)


@pytest.mark.parametrize(
    ("sql", "table", "kind"),
    [
        ("SELECT 1", None, ""),
        ("INSERT INTO t VALUES (1, 'a')", T, "Insert Into"),
        ("INSERT INTO t SELECT x, s FROM t", T, "Insert Into"),
        ("DELETE FROM t WHERE x = 1", T, "Delete"),
        ("UPDATE t SET x = 1", T, "Update"),
        ("INSERT INTO u VALUES ($1)", U, "Insert Into"),
        ("EXPLAIN INSERT INTO t VALUES (1, 'a')", None, ""),
    ],
)
def test_what_a_statement_would_write_is_told(
    warm: Session, sql: str, table: TableName | None, kind: str
) -> None:
    found = warm.write_of(Statement(sql, {"1": 1} if "$1" in sql else {}))
    if table is None:
        assert found is None
    else:
        assert found is not None
        assert (found.table, found.name) == (table, kind)


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("INSERT INTO t VALUES (5, 'x')", QueryForbiddenError, "Insert"),
        ("DELETE FROM t", QueryForbiddenError, "Delete is refused"),
        ("UPDATE t SET x = 1", QueryForbiddenError, "Update is refused"),
        ("INSERT INTO v VALUES (1)", QueryError, "Insert"),
        ("INSERT INTO nothing VALUES (1)", QueryError, "nothing"),
        ("CREATE TABLE z AS SELECT 1", InvalidQueryError, "CREATE"),
        ("DROP VIEW v", InvalidQueryError, "DROP"),
        ("COPY t TO '/tmp/x.csv'", InvalidQueryError, "COPY"),
        ("SET x = 1", InvalidQueryError, "not supported"),
        ("BEGIN", InvalidQueryError, "Unsupported SQL statement"),
        ("PREPARE p AS SELECT 1", InvalidQueryError, "not supported"),
    ],
)
@pytest.mark.parametrize("may_write", [False, True])
async def test_what_may_not_change_anything_is_refused(
    warm: Session, sql: str, error: type[Exception], words: str, may_write: bool
) -> None:
    with pytest.raises(error, match=words):
        await rows(warm, sql, may_write=may_write)
    assert len(await rows(warm, "SELECT * FROM t")) == 4


def test_the_analysis_of_a_statement_is_kept_with_its_plan() -> None:
    over = made()
    statement = Statement("SELECT x FROM t WHERE x > 1", {})
    first = over.analyse(statement)
    assert over.analyse(statement) is first
    assert first.tables == {T}
    assert first.schema.names == ["x"]
    other = over.analyse(Statement("SELECT x FROM t WHERE x > $1", {"1": 1}))
    assert other.tables == {T}


@pytest.mark.parametrize(
    ("sql", "tables", "objection"),
    [
        ("SELECT 1", set(), "rows given in the statement run whole"),
        ("SELECT y FROM w", {"t"}, "table 't' cannot be divided among executors"),
        ("SELECT u.x FROM u JOIN u o ON u.x = o.x", {"u"}, "table 'u' cannot be divided"),
        ("SELECT t.x FROM t JOIN u ON t.x < u.x", {"t", "u"}, "a join without equal keys"),
        ("EXPLAIN SELECT x FROM t", {"t"}, "a statement that does more than read"),
        ("SELECT * FROM runtime.whose", set(), "cannot be divided"),
    ],
)
def test_an_analysis_names_the_tables_and_what_speaks_against_stages(
    warm: Session, sql: str, tables: set[str], objection: str
) -> None:
    found = warm.analyse(Statement(sql, {}))
    assert tables <= set(found.tables)
    assert not {"v", "w"} & set(found.tables)
    assert found.written is None
    assert objection in str(found.objection)
    assert found.plan is None


def test_a_source_that_may_answer_must_be_read(warm: Session) -> None:
    bound = {U: TableName("caraway_source.u")}
    with pytest.raises(SourceNotReadError, match="reads no dataset that its source may answer"):
        warm.start(Statement("SELECT x FROM t", {}, bound=bound))


async def test_a_table_that_takes_the_place_of_another_is_read_for_it() -> None:
    tables: Mapping[str, TableSpec | str] = {
        "t": memory(x=[1]),
        "caraway_source.t": memory(x=[2]),
        "v": "SELECT x FROM t",
    }
    over = Session(EngineSettings(2), snapshot(tables))
    assert over.install(None) == {}
    bound = {T: TableName("caraway_source.t")}
    for sql in ("SELECT x FROM t", "SELECT x FROM v", "SELECT a.x FROM t a JOIN v b ON a.x = b.x"):
        assert await rows(over, sql) == [{"x": 1}]
        assert await rows(over, sql, bound=bound) == [{"x": 2}]
        assert await rows(over, sql) == [{"x": 1}], "the plan without it is still kept"
    with pytest.raises(QueryError):
        await rows(over, "SELECT x FROM caraway_source.t", sources=frozenset())


@pytest.mark.parametrize("parameters", [{}, {"1": 1, "2": 2}, {"name": 1}])
async def test_values_must_be_those_of_the_placeholders(
    warm: Session, parameters: Mapping[str, Any]
) -> None:
    for _ in range(2):
        with pytest.raises(ParametersError):
            await rows(warm, "SELECT x FROM t WHERE x = $1", parameters=parameters)


async def test_statements_over_empty_and_odd_tables() -> None:
    schema = pa.schema([('a "b"', pa.int64()), ("select", pa.string()), ("n", pa.null())])
    empty = MemoryTable(schema, schema.empty_table())
    over = Session(EngineSettings(2), snapshot({'o"d d': empty}))
    assert over.install(None) == {}
    for _ in range(2):
        assert await rows(over, 'SELECT * FROM "o""d d"') == []
        found = await rows(over, 'SELECT count("a ""b""") AS c, max("select") AS m FROM "o""d d"')
        assert found == [{"c": 0, "m": None}]
