"""Statements that run again begin with their optimized plan, in one partition in a crowd."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_engine.execution.contexts import PlanRun
from caraway_engine.execution.crowd import Crowd
from caraway_engine.join_orders import ordered
from caraway_engine.sessions import reruns
from caraway_engine.sessions.plans import StatementPlan
from caraway_engine.sessions.reruns import Reruns
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, session
from tests.kit.tables import parquet

GROUPED = "SELECT g, sum(k) AS s FROM t GROUP BY g ORDER BY g"
ANSWER = [{"g": g, "s": sum(range(g, 1000, 3))} for g in range(3)]


@pytest.fixture
def of(tmp_path: Path) -> Session:
    rows = pa.table({"k": range(1000), "g": [number % 3 for number in range(1000)]})
    return session(
        {"t": parquet(tmp_path / "t", rows, 4), "m": memory(k=list(range(1000)), g=[0] * 1000)}
    )


async def rows(of: Session, sql: str) -> list[dict[str, Any]]:
    return [row async for batch in of.start(Statement(sql, {})) for row in batch.to_pylist()]


def crowded(crowd: Crowd) -> ExitStack:
    stack = ExitStack()
    for number in range(2):
        stack.enter_context(crowd.entered(number))
    return stack


@pytest.fixture
def narrow(of: Session, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans that were made for one partition."""
    made: list[str] = []
    context = of._registered.contexts.planned(PlanRun(), is_narrow=True)
    create = context.create_dataframe_from_logical_plan

    def noted(plan: Any) -> Any:
        dataframe = create(plan)
        made.append(dataframe.execution_plan().display_indent())
        return dataframe

    monkeypatch.setattr(context, "create_dataframe_from_logical_plan", noted)
    return made


async def test_a_short_statement_runs_in_one_partition_in_a_crowd(
    of: Session, narrow: list[str]
) -> None:
    with crowded(of.crowd):
        assert await rows(of, GROUPED) == ANSWER  # Nobody knows yet how long it takes.
    assert narrow == []
    assert await rows(of, GROUPED) == ANSWER
    assert narrow == []
    with crowded(of.crowd):
        assert await rows(of, GROUPED) == ANSWER
    (plan,) = narrow
    assert "RepartitionExec" not in plan


async def test_a_long_statement_keeps_its_partitions(
    of: Session, narrow: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reruns, "_SHORT_S", -1.0)
    await rows(of, GROUPED)
    with crowded(of.crowd):
        assert await rows(of, GROUPED) == ANSWER
    assert narrow == []


async def test_what_cannot_be_planned_for_one_partition_runs_in_several(
    of: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rows(of, GROUPED)

    def refuse(_plan: Any) -> Any:
        raise Exception("SanityCheckPlan")  # As the engine does.

    context = of._registered.contexts.planned(PlanRun(), is_narrow=True)
    monkeypatch.setattr(context, "create_dataframe_from_logical_plan", refuse)
    with crowded(of.crowd):
        assert await rows(of, GROUPED) == ANSWER


@pytest.mark.parametrize(
    "sql", ["SELECT now() AS t", "SELECT now() + INTERVAL '1' DAY AS t FROM m LIMIT 1"]
)
async def test_functions_of_the_time_are_computed_for_each_run(of: Session, sql: str) -> None:
    times = [(await rows(of, sql))[0]["t"] for _ in range(3)]
    assert len(set(times)) == 3


async def test_a_plan_is_optimized_once(of: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    optimized = Reruns.optimized

    def noted(self: Reruns, plan: Any) -> Any:
        kept.append(optimized(self, plan))
        return kept[-1]

    monkeypatch.setattr(Reruns, "optimized", noted)
    for _ in range(3):
        assert await rows(of, GROUPED) == ANSWER
    assert len(kept) >= 3
    assert len(set(map(id, kept))) == 1


async def test_rows_of_tables_in_memory_are_those_of_the_moment(of: Session) -> None:
    count = "SELECT count(*) AS n FROM m"
    assert await rows(of, count) == [{"n": 1000}]
    written = of.start(
        Statement("INSERT INTO m VALUES (1000, 0)", {}, writable=frozenset({TableName("m")}))
    )
    assert [row async for batch in written for row in batch.to_pylist()] == [{"count": 1}]
    assert await rows(of, count) == [{"n": 1001}]


@pytest.mark.parametrize("sql", ["SELECT * FROM t", "SELECT k AS a, t.* FROM t", "SELECT k FROM v"])
async def test_wide_lists_of_columns_are_not_optimized_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    rows_of_t = pa.table({"k": ["a", None], "g": pa.array([1, 2], pa.int16())})
    t = parquet(tmp_path / "w", rows_of_t, 1)
    made = session({"t": t, "v": "SELECT k FROM t UNION ALL SELECT arrow_cast('b', 'LargeUtf8')"})
    optimized: list[StatementPlan] = []
    once = Reruns.optimized

    def noted(self: Reruns, plan: StatementPlan) -> Any:
        optimized.append(plan)
        return once(self, plan)

    monkeypatch.setattr(Reruns, "optimized", noted)
    before = made.start(Statement(sql, {}))
    assert optimized
    expected = [batch async for batch in before]
    monkeypatch.setattr(reruns, "WIDE", 0)
    optimized.clear()
    after = made.start(Statement(sql + " ", {}))
    # A view may hide what changes types.
    assert bool(optimized) == ("FROM v" in sql)
    assert after.schema == before.schema
    # The parts of a union are read at once, so their rows come in any order.
    found = [row async for each in after for row in each.to_pylist()]
    assert sorted(map(repr, found)) == sorted(
        repr(row) for each in expected for row in each.to_pylist()
    )


@pytest.mark.parametrize("sql", ["SELECT * FROM t", "SELECT k AS a, g FROM t x"])
def test_wide_lists_of_columns_are_divided_as_others(
    of: Session, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    before = of.analyse(Statement(sql, {}))
    monkeypatch.setattr(reruns, "WIDE", 0)
    after = of.analyse(Statement(sql + " ", {}))
    assert before.plan is not None and after.plan is not None
    assert (after.schema, after.tables, after.reads) == (before.schema, before.tables, before.reads)


JOINED = (
    "SELECT n, count(*) AS c FROM facts JOIN middle ON facts.d = middle.e "
    "JOIN kinds ON middle.m = kinds.k WHERE n = 'n3' GROUP BY n"
)


@pytest.fixture
def joined(tmp_path: Path) -> Session:
    count = 300_000
    facts = pa.table({"f": range(count), "d": [number % 5_000 for number in range(count)]})
    middle = pa.table({"e": range(5_000), "m": [number % 50 for number in range(5_000)]})
    kinds = pa.table({"k": range(50), "n": [f"n{number}" for number in range(50)]})
    tables = {"facts": facts, "middle": middle, "kinds": kinds}
    return session({name: parquet(tmp_path / name, each, 1) for name, each in tables.items()})


async def test_joins_are_ordered_by_facts_of_files(
    joined: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    planned = joined._registered.contexts.planned(PlanRun())
    create = planned.create_dataframe_from_logical_plan

    def noted(plan: Any) -> Any:
        made.append(plan)
        return create(plan)

    monkeypatch.setattr(planned, "create_dataframe_from_logical_plan", noted)

    assert await rows(joined, JOINED) == [{"n": "n3", "c": 6_000}]
    (plan,) = made
    found = plan.display_indent()
    assert found.index("kinds projection") < found.index("facts projection")


@pytest.mark.parametrize("word", ["EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN VERBOSE"])
async def test_explain_shows_the_order_that_runs(joined: Session, word: str) -> None:
    found = await rows(joined, f"{word} {JOINED}")

    plan = found[-1]["plan"]
    assert plan.index("kinds") < plan.index("middle") < plan.index("facts")


async def test_explain_in_a_format_is_the_engines(joined: Session) -> None:
    assert "┌" in (await rows(joined, f"EXPLAIN FORMAT TREE {JOINED}"))[0]["plan"]


async def test_an_order_in_which_a_filter_would_be_misplaced_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 100_000
    big = pa.table({"a": range(count), "id": [number % 100 for number in range(count)]})
    tables = {
        "big": big,
        "other": pa.table({"b": range(count), "c": range(count)}),
        "small": pa.table({"d": range(100), "id": range(100)}),
    }
    made = session({name: parquet(tmp_path / name, each, 1) for name, each in tables.items()})
    sql = (
        "SELECT count(*) AS n FROM big JOIN other ON big.a = other.b "
        "JOIN small ON big.id = small.id WHERE d = 3"
    )
    found: list[Any] = []

    def noted(*given: Any) -> Any:
        found.append(ordered(*given))
        return found[-1]

    monkeypatch.setattr(reruns, "ordered", noted)

    assert await rows(made, sql) == [{"n": 1_000}]
    plan = made._statements.kept(Statement(sql, {}))
    assert plan is not None
    assert found[0] is not None
    assert made._statements.reruns.ordered(plan) is made._statements.reruns.optimized(plan)
