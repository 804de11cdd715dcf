"""Plans whose tables have the rows of a position of their logs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from datafusion import SessionConfig, SessionContext
from datafusion.catalog import Table

from caraway_core.ids import TableName
from caraway_engine.execution.contexts import CATALOG
from caraway_engine.sessions import plans, positions
from caraway_engine.sessions.plans import KeptPlans
from caraway_engine.sessions.positions import Positions

T, U = TableName("t"), TableName("u")
VIEWS = {
    "seen": ("SELECT a + 100 AS a FROM t", frozenset({T})),
    "over": ("SELECT a + 1000 AS a FROM seen", frozenset({T})),
    'Odd "View"': ("SELECT a * 2 AS a FROM t", frozenset({T})),
    "other": ("SELECT a FROM u", frozenset({U})),
}


@dataclass(frozen=True)
class Shown:
    table: Table


def table(*numbers: int) -> Table:
    return Table(ds.dataset(pa.table({"a": pa.array(numbers, pa.int64())})))


def context() -> SessionContext:
    config = SessionConfig().with_default_catalog_and_schema(CATALOG, "public")
    made = SessionContext(config)
    for name, number in (("t", 1), ("u", 2)):
        made.catalog(CATALOG).schema("public").register_table(name, table(number))
    for name, (sql, _) in VIEWS.items():
        made.catalog(CATALOG).schema("public").register_table(name, made.sql(sql).into_view())
    return made


@pytest.fixture
def made() -> SessionContext:
    return context()


@pytest.fixture
def planner(made: SessionContext) -> Positions:
    views = {TableName(name): view for name, view in VIEWS.items()}
    return Positions(lambda: made, views)


def run(
    planner: Positions, sql: str, shown: Mapping[str, Table] | None = None, **bound: str
) -> list[int]:
    views = {TableName(name): Shown(each) for name, each in (shown or {}).items()}
    names = {TableName(name): TableName(other) for name, other in bound.items()}
    plan = planner.planned(views, sql, lambda given: given.sql(sql), names)
    rows = SessionContext().create_dataframe_from_logical_plan(plan).to_pylist()
    return sorted(next(iter(row.values())) for row in rows)


@pytest.mark.parametrize(
    ("sql", "before", "after"),
    [
        ("SELECT a FROM t", [1], [7, 8]),
        ("SELECT t.a FROM t JOIN u ON t.a > u.a", [], [7, 8]),
        ("SELECT a FROM seen", [101], [107, 108]),
        ("SELECT a FROM over", [1101], [1107, 1108]),
        ("SELECT a FROM OVER", [1101], [1107, 1108]),
        ('SELECT a FROM "Odd ""View"""', [2], [14, 16]),
        ("SELECT a FROM other", [2], [2]),
        ("SELECT a FROM u WHERE a + 5 IN (SELECT a FROM t)", [], [2]),
        ("SELECT a + (SELECT max(a) FROM seen) FROM u", [103], [110]),
    ],
)
def test_a_statement_reads_the_position_also_through_views(
    planner: Positions, made: SessionContext, sql: str, before: list[int], after: list[int]
) -> None:
    assert run(planner, sql) == before
    assert run(planner, sql, {"t": table(7, 8)}) == after
    assert run(planner, sql) == before, "what stood there is back"
    assert sorted(made.sql(sql).to_pydict().popitem()[1]) == before


def test_a_table_is_back_after_a_statement_that_cannot_be_planned(planner: Positions) -> None:
    for sql in ("SELECT none FROM t", "SELECT a FROM none"):
        with pytest.raises(Exception, match="none"):
            run(planner, sql, {"t": table(7)}, u="t")
    assert run(planner, "SELECT a FROM over") == [1101]
    assert run(planner, "SELECT a FROM u") == [2]


def test_a_bound_table_is_read_in_place_of_another(planner: Positions) -> None:
    assert run(planner, "SELECT a FROM u", u="t") == [1]
    assert run(planner, "SELECT a FROM other", u="t") == [1]
    assert run(planner, "SELECT a FROM u", {"t": table(9)}, u="t") == [9]
    assert run(planner, "SELECT a FROM u") == [2]


def plan(views: Mapping[str, Any]) -> Any:
    @dataclass
    class Plan:
        views: Mapping[TableName, Any]

    return Plan({TableName(name): view for name, view in views.items()})


def test_plans_of_earlier_positions_are_forgotten(planner: Positions) -> None:
    old, new = Shown(table(1)), Shown(table(2))
    kept, gone, apart = plan({"u": old}), plan({"t": old}), plan({"t": new, "u": old})
    for sql, each in (("kept", kept), ("gone", gone), ("apart", apart)):
        planner.remember(sql, each)
    assert planner.recall("gone", {T: old}) is gone  # type: ignore[dict-item] # stands for a view
    assert planner.recall("gone", {T: new}) is None  # type: ignore[dict-item]
    assert planner.recall("gone", {}) is None and planner.recall("none", {}) is None
    planner.planned({T: new}, "SELECT 1", lambda given: given.sql("SELECT 1"))
    assert planner.recall("gone", {T: old}) is None  # type: ignore[dict-item]
    assert planner.recall("kept", {U: old}) is kept  # type: ignore[dict-item]
    assert planner.recall("apart", {T: new, U: old}) is apart  # type: ignore[dict-item]


def test_the_plans_that_were_used_last_are_kept(
    planner: Positions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positions, "_CACHED_PLANS", 2)
    monkeypatch.setattr(plans, "_CACHED_PLANS", 2)
    kept, held = KeptPlans(), {name: plan({}) for name in "abc"}
    for cache in (planner, kept):
        cache.remember("a", held["a"])
        cache.remember("b", held["b"])
        recall = (lambda sql: planner.recall(sql, {})) if cache is planner else kept.recall
        assert recall("a") is held["a"]
        cache.remember("c", held["c"])
        assert [recall(name) for name in "abc"] == [held["a"], None, held["c"]]
