"""The rights of statements in a session, for any text."""

import pytest

from caraway_core.errors import InvalidQueryError, QueryError, QueryForbiddenError
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session
from tests.kit.hostile import HOSTILE, TEMPLATES, identifier, literal

_READS = [each for each in TEMPLATES if not each.startswith(("INSERT", "EXPLAIN"))]
_WRITABLE = frozenset({TableName("t")})


@pytest.fixture
def made() -> Session:
    return session({"t": memory(a=[1, 2], b=["x", "y"]), "u": memory(a=[1, 3], b=["x", "z"]),
                    "orders": memory(a=[1])})  # fmt: skip


def _filled(template: str, text: str) -> str:
    return template.format(text=literal(text), name=identifier(text))


@pytest.mark.parametrize("writable", [frozenset[TableName](), _WRITABLE])
@pytest.mark.parametrize("text", HOSTILE)
async def test_a_query_with_such_a_text_is_a_query(
    made: Session, text: str, writable: frozenset[TableName]
) -> None:
    for template in _READS:
        sql = _filled(template, text)
        stream = made.start(Statement(sql, {}, bool(writable), writable))
        assert stream.written is None, sql
        assert stream.reads_only_catalog, sql
        assert not stream.is_product, sql
        assert all([batch.num_columns async for batch in stream])
        analysis = made.analyse(Statement(sql, {}))
        assert not analysis.reads_system and not analysis.is_diagnostic
        assert analysis.tables <= {"t", "u"}


@pytest.mark.parametrize("text", HOSTILE)
async def test_an_insert_with_such_a_text_goes_where_it_says(made: Session, text: str) -> None:
    sql = f"INSERT INTO t VALUES (7, {literal(text)})"
    stream = made.start(Statement(sql, {}, True, _WRITABLE))
    assert stream.written == "t"
    assert [batch.to_pylist() async for batch in stream] == [[{"count": 1}]]
    assert await rows(made, "SELECT b FROM t WHERE a = 7") == [{"b": text}]
    with pytest.raises(QueryForbiddenError, match="dataset 'orders' is read-only"):
        made.start(Statement("INSERT INTO orders VALUES (1)", {}, True, _WRITABLE))


@pytest.mark.parametrize("text", HOSTILE)
async def test_explaining_such_a_text_does_nothing_else(made: Session, text: str) -> None:
    for template in [*_READS, *(each for each in TEMPLATES if each.startswith("INSERT"))]:
        sql = f"EXPLAIN {_filled(template, text)}"
        stream = made.start(Statement(sql, {}, True, _WRITABLE))
        assert [batch async for batch in stream]
        assert made.analyse(Statement(sql, {}, True, _WRITABLE)).is_diagnostic
    assert await rows(made, "SELECT count(*) AS n FROM t") == [{"n": 2}]
    with pytest.raises(InvalidQueryError, match="it would insert into rows"):
        made.start(
            Statement(f"EXPLAIN ANALYZE INSERT INTO t VALUES (1, {literal(text)})", {}, True,
                      _WRITABLE)
        )  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "sql",
    [
        "PREPARE p AS SELECT {text} FROM t",
        "PREPARE p AS INSERT INTO t VALUES (1, {text})",
        "EXECUTE p({text})",
        "DEALLOCATE p",
        "SET datafusion.execution.time_zone = {text}",
        "RESET datafusion.execution.time_zone",
        "COPY (SELECT {text} FROM t) TO '/nowhere/x.csv'",
        "CREATE TABLE made AS SELECT {text} AS a",
        "CREATE VIEW made AS SELECT {text} AS a",
        "DROP TABLE t",
        "BEGIN",
        "COMMIT",
    ],
)
def test_statements_that_are_no_queries_are_refused_as_what_they_are(
    made: Session, sql: str, text: str
) -> None:
    for writable in (frozenset[TableName](), _WRITABLE):
        with pytest.raises((InvalidQueryError, QueryForbiddenError)) as caught:
            made.start(Statement(sql.format(text=literal(text)), {}, bool(writable), writable))
        assert not isinstance(caught.value, QueryError) or text not in caught.value.message


def test_a_view_may_hold_such_a_text() -> None:
    for text in HOSTILE:
        made = session({"t": memory(a=[1]), "seen": f"SELECT a, {literal(text)} AS b FROM t"})
        assert made.analyse(Statement("SELECT * FROM seen", {})).tables == {"t"}
