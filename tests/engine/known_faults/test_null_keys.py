"""Joins by `=` and by IS NOT DISTINCT FROM do not change what NULL equals in each other."""

from random import Random

import duckdb
import pyarrow as pa
import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import null_keys, scopes, syntax
from caraway_engine.known_faults.expression_types import Types
from caraway_engine.sessions.sessions import Session
from tests.differential.asking import Runner
from tests.engine.known_faults.memory import check_same, duckdb_over, session_over
from tests.kit.engine import memory, rows, session

_CHANCE = Random(1)
_VIEWS = {
    "safe": "SELECT x.k, x.s, y.f FROM a AS x JOIN b AS y ON x.k IS NOT DISTINCT FROM y.k",
    "plain": "SELECT x.k, x.s, y.f FROM a AS x JOIN b AS y ON x.k = y.k",
}
_RELATIONS = st.sampled_from(["a", "b", "a", "b", *_VIEWS])
_FORMS = st.sampled_from(
    ["{0}.{2} = {1}.{2}", "{0}.{2} = {1}.{2}", "{0}.{2} IS NOT DISTINCT FROM {1}.{2}",
     "NOT ({0}.{2} IS DISTINCT FROM {1}.{2})"]
)  # fmt: skip
_EQUALITIES = st.builds(lambda form, column: (form, column), _FORMS, st.sampled_from("ksf"))
_KINDS = st.sampled_from(["JOIN", "JOIN", "JOIN", "CROSS JOIN", "LEFT JOIN", "FULL JOIN"])


def _rows() -> pa.Table:
    return pa.table({
        "k": pa.array([_CHANCE.choice([None, 1, 2, 3]) for _ in range(9)], pa.int64()),
        "s": pa.array([_CHANCE.choice([None, "x", "y"]) for _ in range(9)]),
        "f": pa.array([_CHANCE.choice([None, 0.0, 1.5]) for _ in range(9)]),
    })  # fmt: skip


TABLES = {"a": _rows(), "b": _rows()}


@pytest.fixture(scope="module")
def made() -> Session:
    return session_over(TABLES, _VIEWS)


@pytest.fixture(scope="module")
def judge() -> duckdb.DuckDBPyConnection:
    return duckdb_over(TABLES, _VIEWS)


@st.composite
def joined(draw: st.DrawFn) -> str:
    """Return a statement that counts the rows of joins, and what in them is not NULL."""
    from_, where = f"{draw(_RELATIONS)} AS t0", []
    count = draw(st.integers(2, 4))
    for number in range(1, count):
        form, column = draw(_EQUALITIES)
        condition = form.format(f"t{draw(st.integers(0, number - 1))}", f"t{number}", column)
        kind = draw(_KINDS)
        if kind == "CROSS JOIN":
            where.append(condition)
            # The ON of a later join does not see what is before a comma.
            kind = "," if number == count - 1 else " CROSS JOIN"
            from_ = f"{from_}{kind} {draw(_RELATIONS)} AS t{number}"
        else:
            from_ = f"{from_} {kind} {draw(_RELATIONS)} AS t{number} ON {condition}"
    if draw(st.booleans()):
        form, column = draw(_EQUALITIES)
        where.append(form.format("t0", f"t{count - 1}", column))
    counted = ", ".join(f"count(t{number}.k), count(t{number}.s)" for number in range(count))
    filtered = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT count(*), {counted} FROM {from_}{filtered}"


@settings(max_examples=150)
@given(sql=joined())
def test_joins_keep_what_null_equals(
    made: Session, judge: duckdb.DuckDBPyConnection, sql: str
) -> None:
    check_same(made, judge, sql)


@pytest.mark.parametrize(
    "condition", ["a.k IS NOT DISTINCT FROM 1", "a.k IS DISTINCT FROM NULL", "a.k = b.k"]
)
def test_comparisons_with_constants_stay(condition: str) -> None:
    (statement,) = syntax.parse(f"SELECT a.k FROM a JOIN b ON {condition}")
    (scope,) = scopes.scopes(statement)
    assert not null_keys.mend(scope, Types(SessionContext()))


async def test_a_join_still_has_a_key(made: Session) -> None:
    sql = "EXPLAIN SELECT a.k FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k"
    text = "\n".join(str(each["plan"]) for each in await rows(made, sql))
    assert "HashJoinExec" in text and "NullsEqual" not in text


async def test_zeros_of_both_signs_are_one_value() -> None:
    made = session({"a": memory(f=pa.array([0.0, None])), "b": memory(f=pa.array([-0.0, None]))})
    for kind, number in (("", 2), ("LEFT SEMI", 2), ("RIGHT SEMI", 2), ("LEFT ANTI", 0)):
        sql = f"SELECT count(*) AS n FROM a {kind} JOIN b ON a.f IS NOT DISTINCT FROM b.f"
        assert await rows(made, sql) == [{"n": number}]


def test_a_filter_from_the_other_side_keeps_nulls(runner: Runner) -> None:
    """The least and the greatest struct are not those of structs with NULL."""
    sql = (
        "SELECT t.v FROM t JOIN (SELECT CAST(NULL AS BIGINT) AS x FROM one) q "
        "ON t.k IS NOT DISTINCT FROM q.x"
    )
    answer = runner.outcome(sql)
    assert isinstance(answer, pa.Table), answer
    assert answer.to_pydict() == {"v": [40]}
