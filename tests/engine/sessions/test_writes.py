"""UPDATE, DELETE and INSERT over rows in memory change the same rows as in DuckDB."""

import asyncio
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError, QueryError
from caraway_core.ids import TableName
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

MOST = 9223372036854775807
COLUMNS = {
    "id": pa.array(range(8), pa.int64()),
    "a": pa.array([1, 2, None, 3, None, 0, -1, 5], pa.int64()),
    "b": pa.array([1, None, None, 4, 2, 0, 1, 5], pa.int64()),
    "s": pa.array(["x", "y", None, "x", "", "z", "a''b", "X"]),
    'we"ird': pa.array(range(8), pa.int64()),
}
CONDITIONS = st.recursive(
    st.sampled_from(
        ["a = b", "a > 1", "a IS NULL", "s = 'x'", "s LIKE '%x%'", "s NOT IN ('x', NULL)",
         "a IN (1, 2, NULL)", "a NOT IN (1, NULL)", "a NOT IN (b, 2)", "a + b > 3", "a * b = 1",
         "a - b < id", "coalesce(a, b) = 1", "true", "false", "NULL", "a = a", "a <> a", "1 = 2",
         "a = NULL", "a = 1 AND a = 2", "upper(s) = 'X'", '"we""ird" > 3', "id BETWEEN 2 AND 5",
         "a IS DISTINCT FROM b", "NOT (a = b)", "(a = b) IS NOT TRUE", "t.a = 1", "-a < 0",
         "CASE WHEN a > 0 THEN b ELSE a END > 1", "nullif(a, b) IS NULL"]
    ),
    lambda inner: st.builds(
        "{} {} {}".format, inner, st.sampled_from(["AND", "OR"]), inner
    ) | st.builds("NOT ({})".format, inner) | st.builds("({})".format, inner),
    max_leaves=4,
)  # fmt: skip
SETS = st.lists(
    st.sampled_from(
        [("a", "b"), ("b", "a"), ("a", "a + 1"), ("a", "-a"), ("a", "NULL"), ("s", "s || 'z'"),
         ("b", "a"), ("b", "a * 2 - id"), ('"we""ird"', "id"), ("b", '"we""ird"'),
         ("a", "CASE WHEN a = b THEN 1 ELSE a END"), ("s", "CAST(id AS VARCHAR)"),
         ("s", "CASE WHEN a > 1 THEN s END"), ("b", "coalesce(a, 0) * 2"), ("b", "length(s)")]
    ),
    min_size=1, max_size=3, unique_by=lambda each: each[0],
)  # fmt: skip
STATEMENTS = (
    st.builds("DELETE FROM t WHERE {}".format, CONDITIONS)
    | st.builds(
        lambda sets, where: (
            f"UPDATE t SET {', '.join(f'{column} = {value}' for column, value in sets)} "
            f"WHERE {where}"
        ),
        SETS,
        CONDITIONS,
    )
    | st.builds("INSERT INTO t (s, id, b) SELECT s, id + 10, a FROM t WHERE {}".format, CONDITIONS)
)


async def _write(made: Session, sql: str, **parameters: Any) -> int:
    writable = frozenset({TableName("t")})
    ((count,),) = (
        each.values()
        for each in await rows(made, sql, parameters=parameters, may_write=True, writable=writable)
    )
    return int(count)


def _made(**columns: Any) -> Session:
    return session({"t": memory(**(columns or COLUMNS))})


@settings(max_examples=20)
@given(st.lists(STATEMENTS, min_size=1, max_size=3))
def test_changes_are_those_of_another_database(statements: list[str]) -> None:
    asyncio.run(_check(statements))


async def _check(statements: list[str]) -> None:
    made, other = _made(), duckdb.connect()
    given_rows = pa.table(COLUMNS)  # noqa: F841 # read by name
    other.execute("CREATE TABLE t AS SELECT * FROM given_rows")
    for sql in statements:
        count = await _write(made, sql)
        assert [(count,)] == other.execute(sql).fetchall(), sql
        found = await rows(made, "SELECT * FROM t ORDER BY id, a, b, s")
        expected = other.execute("SELECT * FROM t ORDER BY id, a, b, s").to_arrow_table()
        assert found == expected.to_pylist(), sql


@pytest.mark.parametrize(
    "sql",
    [
        f"UPDATE t SET a = a * {MOST}",
        f"UPDATE t SET a = a + {MOST} WHERE id = 7",
        f"UPDATE t SET a = 1 WHERE a + {MOST} < 0",
        f"UPDATE t SET s = CAST(a + {MOST} AS VARCHAR)",
        f"DELETE FROM t WHERE a + {MOST} < 0",
        f"DELETE FROM t WHERE NOT a - -{MOST} > 0",
        f"INSERT INTO t (a) VALUES ({MOST} + 1)",
        f"INSERT INTO t (id, a) VALUES (1, 2), (3, {MOST} * 2)",
        f"INSERT INTO t (a) SELECT x FROM (VALUES ({MOST} + 1)) v(x)",
        f"INSERT INTO t (a) SELECT a + {MOST} FROM t",
    ],
)
async def test_numbers_that_do_not_fit_change_nothing(sql: str) -> None:
    made = _made()
    with pytest.raises(QueryError, match="does not fit the type BIGINT"):
        await _write(made, sql)
    assert await rows(made, "SELECT * FROM t") == pa.table(COLUMNS).to_pylist()


async def test_values_of_parameters_are_guarded_too() -> None:
    made = _made()
    with pytest.raises(QueryError, match="does not fit the type BIGINT"):
        await _write(made, "UPDATE t SET a = a + $1 WHERE a = $2", **{"1": MOST, "2": 1})
    sql = "DELETE FROM t WHERE a NOT IN ($1, 7) AND a IN (1, 2)"
    assert await _write(made, sql, **{"1": None}) == 0


async def test_rows_of_values_are_guarded_in_queries() -> None:
    made = _made()
    for sql in (f"VALUES ({MOST} + 1)", f"SELECT * FROM (VALUES (1), ({MOST} * 2)) v"):
        with pytest.raises(QueryError, match="does not fit the type BIGINT"):
            await rows(made, sql)
    assert await rows(made, f"VALUES ({MOST}, -{MOST} - 1, 1 + 1)") == [
        {"column1": MOST, "column2": -MOST - 1, "column3": 2}
    ]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DELETE FROM t WHERE id IN (SELECT max(id) FROM t)", "cannot have a subquery"),
        ("UPDATE t SET a = (SELECT 1)", "cannot have a subquery"),
        ("UPDATE t SET a = (SELECT max(u.a) FROM t u WHERE u.id = t.id)", "cannot have a subquery"),
        ("TRUNCATE TABLE t", "write DELETE without WHERE"),
    ],
)
async def test_changes_that_the_engine_gets_wrong_are_refused(sql: str, says: str) -> None:
    made = _made()
    with pytest.raises(InvalidQueryError, match=says):
        await _write(made, sql)
    assert len(await rows(made, "SELECT * FROM t")) == 8
