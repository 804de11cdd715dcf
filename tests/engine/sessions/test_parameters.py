"""Types of parameters, as the engine infers them from a statement without values."""

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError, QueryError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, session


@pytest.fixture(scope="module")
def made() -> Session:
    rows = memory(
        id=pa.array([1], pa.int64()),
        name=["x"],
        price=pa.array([1], pa.int16()).cast(pa.decimal128(9, 2)),
        at=pa.array([0], pa.timestamp("us", "UTC")),
        ok=[True],
    )
    return session({"t": rows, "u": rows, "v": "SELECT id AS i FROM t"})


def _types(of: Session, sql: str) -> dict[str, pa.DataType]:
    return dict(of.parameters(Statement(sql, {})))


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT 1", {}),
        ("SELECT * FROM t WHERE id = $1", {"1": pa.int64()}),
        ("SELECT * FROM t WHERE id = ? AND name = ?", {"1": pa.int64(), "2": pa.string()}),
        ("SELECT * FROM t WHERE price > :p", {"p": pa.decimal128(9, 2)}),
        ("SELECT * FROM t WHERE at < $1 OR at > $1", {"1": pa.timestamp("us", "UTC")}),
        ("SELECT * FROM v WHERE i IN ($1, $2)", {"1": pa.int64(), "2": pa.int64()}),
        ("SELECT $1", {"1": pa.null()}),
        ("SELECT * FROM t LIMIT $1", {"1": pa.null()}),
        ("SELECT * FROM generate_series(1, $1)", {"1": pa.null()}),
        ("SELECT date_part($1, at) FROM t", {"1": pa.null()}),
        ("SELECT $1, * FROM t WHERE id = $1", {"1": pa.int64()}),
        ("SELECT '$1', \"name\" FROM t -- $2\nWHERE id = $3", {"3": pa.int64()}),
        ("SELECT * FROM t WHERE id IS DISTINCT FROM $1 AND ok", {"1": pa.int64()}),
        ("SELECT * FROM t WHERE id IN (SELECT id FROM u WHERE u.name = $1)", {"1": pa.string()}),
        ("INSERT INTO t (id, name) VALUES ($1, $2)", {"1": pa.int64(), "2": pa.string()}),
        ("UPDATE t SET name = $1 WHERE id = $2", {"1": pa.string(), "2": pa.int64()}),
        ("DELETE FROM t WHERE at >= $1", {"1": pa.timestamp("us", "UTC")}),
    ],
)
def test_a_parameter_has_the_type_that_it_is_compared_with(
    made: Session, sql: str, types: dict[str, pa.DataType]
) -> None:
    assert _types(made, sql) == types


def test_statements_that_cannot_be_planned_are_explained(made: Session) -> None:
    with pytest.raises(TableNotFoundError):
        _types(made, "SELECT * FROM nothing WHERE id = $1")
    with pytest.raises(QueryError):
        _types(made, "SELECT * FROM t WHERE nothing = $1")
    with pytest.raises(InvalidQueryError):
        _types(made, "SELECT * FROM t WHERE id = $1 AND")
    deep = "(" * 300 + "$1" + ")" * 300
    with pytest.raises(InvalidQueryError):
        _types(made, f"SELECT {deep}")


def test_names_that_may_not_be_read_are_not_told_from_others(made: Session) -> None:
    limited = Statement("SELECT * FROM t WHERE id = $1", {}, readable=frozenset({TableName("u")}))
    with pytest.raises(TableNotFoundError) as caught:
        made.parameters(limited)
    assert "id" not in caught.value.message.split("'")[1:2]
