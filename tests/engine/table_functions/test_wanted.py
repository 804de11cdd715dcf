"""The number of rows, and the columns, that an optimized plan reads of the tables of searches."""

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from caraway_core.ids import TableName
from caraway_engine.table_functions import wanted
from caraway_engine.table_functions.wanted import WantedRows

T, U = TableName("t"), TableName("u")


@pytest.fixture(scope="module")
def context() -> SessionContext:
    made = SessionContext()
    rows = pa.table({"id": [1], "cat": ["x"], "score": [0.5]})
    for name in (T, U):
        made.register_record_batches(name, [rows.to_batches()])
    return made


def _wanted(context: SessionContext, sql: str, filtered: Collection[TableName] = ()) -> Any:
    plan = context.sql(sql).optimized_logical_plan()
    return wanted.of(plan, {T: "score", U: None}, filtered)


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT * FROM t", None),
        ("SELECT * FROM t LIMIT 5", 5),
        ("SELECT * FROM t LIMIT 5 OFFSET 3", 8),
        ("SELECT * FROM t LIMIT 0", "unread"),
        ("SELECT * FROM (SELECT * FROM t LIMIT 3) LIMIT 5 OFFSET 1", 3),
        ("SELECT * FROM t ORDER BY score DESC LIMIT 5", 5),
        ("SELECT id AS i, score AS s FROM t ORDER BY s DESC LIMIT 5 OFFSET 2", 7),
        ("SELECT * FROM t ORDER BY score LIMIT 5", None),
        ("SELECT * FROM t ORDER BY id DESC LIMIT 5", None),
        ("SELECT * FROM t ORDER BY score DESC, id LIMIT 5", None),
        ("SELECT * FROM t ORDER BY score + 1 DESC LIMIT 5", None),
        ("SELECT id AS score, score AS id FROM t ORDER BY score DESC LIMIT 5", None),
        ("SELECT * FROM t WHERE id > 1 LIMIT 5", None),
        ("SELECT DISTINCT cat FROM t LIMIT 5", None),
        ("SELECT count(*) FROM t LIMIT 5", None),
        ("SELECT * FROM t JOIN u ON t.id = u.id LIMIT 5", None),
        ("SELECT * FROM t UNION ALL SELECT * FROM t LIMIT 5", None),
        ("SELECT rank() OVER (ORDER BY score DESC) FROM t LIMIT 5", None),
        ("SELECT * FROM u ORDER BY score DESC LIMIT 5", "unread"),
        ("SELECT * FROM u WHERE id IN (SELECT id FROM t ORDER BY score DESC LIMIT 5)", 5),
        ("SELECT * FROM u WHERE id > (SELECT max(id) FROM t)", None),
    ],
)
def test_the_best_rows_do_only_where_no_others_can_be_needed(
    context: SessionContext, sql: str, most: int | str | None
) -> None:
    found = _wanted(context, sql)
    if most == "unread":
        assert T not in found
    else:
        assert found[T].most == most


def test_conditions_that_the_search_applies_do_not_count(context: SessionContext) -> None:
    sql = "SELECT * FROM t WHERE id > 1 ORDER BY score DESC LIMIT 5"
    assert _wanted(context, sql)[T].most is None
    assert _wanted(context, sql, {T})[T].most == 5


def test_only_columns_that_are_read_are_wanted(context: SessionContext) -> None:
    found = _wanted(context, "SELECT t.cat FROM t JOIN u ON t.id = u.id WHERE u.cat = 'x'")
    assert found == {
        T: WantedRows(frozenset({"id", "cat"}), None),
        U: WantedRows(frozenset({"id", "cat"}), None),
    }
    twice = _wanted(context, "(SELECT id FROM t LIMIT 1) UNION ALL (SELECT cat FROM t LIMIT 1)")
    assert twice[T] == WantedRows(frozenset({"id", "cat"}), None)
    inside = "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.cat = u.cat)"
    assert "cat" in _wanted(context, inside)[T].columns
