"""Joins are in the order that facts suggest, with the same rows; any doubt keeps a plan."""

from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_core.ids import TableName
from caraway_engine.join_orders import ordered
from tests.engine.join_orders.made import TABLES, context, facts_of, kinds

NAMED = (
    "SELECT name, sum(v * w) AS s FROM facts JOIN others ON facts.f = others.f "
    "JOIN middle ON facts.d = middle.d JOIN kinds ON middle.k = kinds.k "
    "WHERE name = 'n3' GROUP BY name"
)
GROUPED = (
    "SELECT count(*) AS n, sum(v) AS s FROM facts JOIN middle ON facts.d = middle.d "
    "WHERE k = 3 AND v < (SELECT avg(v) FROM facts AS i WHERE i.d = middle.d)"
)
HALF = (
    "SELECT count(*) AS n FROM facts JOIN others ON facts.f = others.f "
    "WHERE facts.d IN (SELECT d FROM middle WHERE k = 3)"
)


def found(sql: str) -> Any:
    return ordered(context().sql(sql).optimized_logical_plan(), facts_of())


def rows(plan: Any) -> list[dict[str, Any]]:
    unchanged = SessionContext(SessionConfig().set("datafusion.optimizer.max_passes", "0"))
    batches = unchanged.create_dataframe_from_logical_plan(plan).collect()
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("sql", [NAMED, GROUPED, HALF])
def test_the_rows_are_the_same(sql: str) -> None:
    plan = found(sql)

    assert plan is not None
    assert rows(plan) == context().sql(sql).to_pylist()


def test_filtered_tables_are_joined_first() -> None:
    assert kinds(found(NAMED))[-4:] == ["kinds", "middle", "facts", "others"]


def test_what_keeps_an_order_is_logged_once_for_each_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failing(name: TableName) -> None:
        raise ValueError(f"Execution error: no facts of '{name}'")

    with caplog.at_level("INFO", "caraway_engine.join_orders"):
        for sql in (NAMED, HALF):
            assert ordered(context().sql(sql).optimized_logical_plan(), failing) is None

    found = [vars(each)["kind"] for each in caplog.records]
    assert found == ["ValueError: Execution error"]


def test_a_semi_join_filters_before_the_joins() -> None:
    assert kinds(found(HALF)) == ["Inner", "LeftSemi", "facts", "middle", "others"]


def test_a_grouping_reads_only_rows_whose_groups_are_joined() -> None:
    plan = found(GROUPED)

    assert kinds(plan).count("middle") == 2
    assert "LeftSemi Join: i.d = __keys_1.value" in plan.display_indent()


def test_an_equality_that_follows_from_others_joins() -> None:
    sql = (
        "SELECT count(*) AS n FROM facts JOIN others ON facts.d = others.f "
        "JOIN middle ON others.f = middle.d WHERE k = 3"
    )

    plan = found(sql)

    assert plan is not None
    assert rows(plan) == context().sql(sql).to_pylist()
    assert kinds(plan)[:2] == ["Inner", "Inner"]


def test_two_columns_of_one_table_stay_equal() -> None:
    sql = (
        "SELECT count(*) AS n FROM facts JOIN others ON facts.d = others.f "
        "JOIN middle ON middle.d = others.f AND middle.k = facts.d"
    )
    plan = found(sql)

    assert plan is not None
    assert rows(plan) == context().sql(sql).to_pylist()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM facts LEFT JOIN others ON facts.f = others.f",
        "SELECT count(*) FROM facts JOIN others ON facts.f = others.f",
        "SELECT v FROM facts WHERE v = 3",
        "SELECT count(*) FROM middle JOIN kinds ON middle.k = kinds.k JOIN kinds AS o ON o.k = 1",
    ],
)
def test_a_plan_that_has_no_better_one_stays(sql: str) -> None:
    assert found(sql) is None


def test_a_table_without_facts_keeps_the_plan() -> None:
    known = facts_of({name: TABLES[name] for name in ("facts", "others", "middle")})

    assert ordered(context().sql(NAMED).optimized_logical_plan(), known) is None


def test_a_plan_below_an_outer_join_is_ordered() -> None:
    sql = f"SELECT * FROM kinds AS x LEFT JOIN ({NAMED}) AS y ON x.name = y.name ORDER BY x.k"

    plan = found(sql)

    assert plan is not None
    assert kinds(plan)[0] == "Left"
    assert rows(plan) == context().sql(sql).to_pylist()


def test_names_and_types_stay() -> None:
    sql = 'SELECT name AS "A b", d, "F"."f" FROM facts AS "F" JOIN others USING (f) ' \
          'JOIN middle USING (d) JOIN kinds USING (k) WHERE name = \'n3\''  # fmt: skip
    before = context().sql(sql)

    plan = found(sql)

    assert plan is not None
    after = SessionContext().create_dataframe_from_logical_plan(plan)
    assert pa.schema(after.schema()) == pa.schema(before.schema())
