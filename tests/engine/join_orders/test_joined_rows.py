from typing import Any

import pytest

from caraway_core.ids import TableName
from caraway_engine.join_orders import joined_rows
from caraway_engine.join_orders.joined_rows import JoinedRows
from tests.engine.join_orders.made import context, facts_of

FACTS, OTHERS, MIDDLE, KINDS = map(TableName, ("facts", "others", "middle", "kinds"))
JOINED = (
    "SELECT sum(v) FROM facts JOIN middle ON facts.d = middle.d JOIN kinds ON middle.k = kinds.k "
    "WHERE name = 'n3'"
)


def optimized(sql: str) -> Any:
    return context().sql(sql).optimized_logical_plan()


def rows_of(sql: str) -> JoinedRows:
    return joined_rows.joined_rows(optimized(sql), facts_of())


def test_rows_are_those_of_the_tables_of_a_join() -> None:
    rows = rows_of(JOINED)

    assert rows.keys() == {frozenset({FACTS, MIDDLE}), frozenset({FACTS, MIDDLE, KINDS})}
    assert rows[frozenset({FACTS, MIDDLE})] == pytest.approx(60_000, rel=0.3)
    assert rows[frozenset({FACTS, MIDDLE, KINDS})] == pytest.approx(1_200, rel=0.5)


def test_several_keys_have_at_most_as_many_values_as_there_are_rows() -> None:
    rows = rows_of("SELECT count(*) FROM facts JOIN others ON facts.f = others.f AND v = w")

    assert rows[frozenset({FACTS, OTHERS})] == pytest.approx(60_000, rel=0.3)


def test_a_join_of_a_table_with_itself_is_left_out() -> None:
    assert rows_of("SELECT count(*) FROM facts a JOIN facts b ON a.f = b.f") == {}


def test_a_table_of_which_nothing_is_known_leaves_its_joins_out() -> None:
    plan = optimized(JOINED)
    known = facts_of()

    rows = joined_rows.joined_rows(plan, lambda name: None if name == KINDS else known(name))

    assert rows.keys() == {frozenset({FACTS, MIDDLE})}


def test_an_error_is_logged_once_and_none_of_the_statement(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_name: TableName) -> None:
        raise OSError("secret path")

    with caplog.at_level("INFO", "caraway_engine.join_orders"):
        for _ in range(2):
            assert joined_rows.joined_rows(optimized(JOINED), fails) == {}

    assert [each.message for each in caplog.records] == ["rows of joins are not estimated"]
    assert "secret" not in caplog.text
