"""The cache of plans: no statement gets the plan of one that may read more, or other rows."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import QueryError, TableNotFoundError
from caraway_core.ids import PrincipalId, TableName
from caraway_core.statements import GivenRows, Statement
from caraway_engine.scans import presence
from caraway_engine.sessions import plans
from caraway_engine.sessions.plans import KeptPlans, StatementPlan
from caraway_engine.statements import plan_facts
from caraway_engine.statements.statements import Effect
from tests.kit.engine import memory, rows, session

T = TableName("t")
OWN = Statement("SELECT 1", {})
USER = replace(OWN, sources=frozenset())
TEXTS = st.sampled_from(["own: ", "user: ", "own", ":", " ", "SELECT 1"])


@given(st.lists(TEXTS).map("".join), st.lists(TEXTS).map("".join))
def test_no_text_of_a_user_is_the_key_of_a_statement_of_the_runtime(own: str, user: str) -> None:
    assert plans.key_of(replace(OWN, sql=own)) != plans.key_of(replace(USER, sql=user))
    assert (plans.key_of(replace(USER, sql=own)) == plans.key_of(replace(USER, sql=user))) is (
        own == user
    )


@pytest.mark.parametrize("prefix", ["own: ", "own:", "user: ", ""])
async def test_a_user_never_reads_a_source_through_a_kept_plan(prefix: str) -> None:
    made = session({"t": memory(a=[1]), "caraway_source.t": memory(secret=["hidden"])})
    hidden = "SELECT * FROM caraway_source.t"
    assert await rows(made, hidden) == [{"secret": "hidden"}]
    with pytest.raises(QueryError) as caught:
        await rows(made, f"{prefix}{hidden}", sources=frozenset())
    assert "hidden" not in caught.value.message
    # Nor the other way round, where names mean something else.
    assert await rows(made, "SELECT * FROM t", sources=frozenset()) == [{"a": 1}]
    with pytest.raises(QueryError):
        await rows(made, "user: SELECT * FROM t")


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"1": 5}},
        {"targets": {T: T}},
        {"as_changes": True},
        {"readable": frozenset({T})},
        {"readable": frozenset[TableName]()},
        {"bound": {T: T}},
        {"sources": frozenset({TableName("caraway_source.t")})},
        {"given": GivenRows.named(TableName("exchange.x"), pa.table({"a": [1]}))},
        {"found": ()},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_plans_that_hold_for_one_statement_are_not_kept(changes: dict[str, Any]) -> None:
    assert plans.key_of(replace(USER, **changes)) is None


async def test_writers_share_the_plans_of_readers_but_for_writes() -> None:
    made = session({"t": memory(a=[1])})
    reader = replace(USER, sql="SELECT * FROM t")
    writer: dict[str, Any] = {"writable": frozenset({T})}
    assert plans.key_of(replace(reader, **writer)) == plans.key_of(reader)
    insert = "INSERT INTO t VALUES (2)"
    for _ in range(2):
        with pytest.raises(QueryError, match="read-only"):
            await rows(made, insert, sources=frozenset())
        await rows(made, insert, sources=frozenset(), **writer)
    assert len(await rows(made, reader.sql, sources=frozenset(), **writer)) == 3
    assert len(await rows(made, reader.sql, sources=frozenset())) == 3


async def test_who_may_read_less_does_not_get_the_plan_of_somebody_else() -> None:
    made = session({"t": memory(a=[1]), "u": memory(b=[2])})
    sql = "SELECT * FROM t"
    assert await rows(made, sql, sources=frozenset()) == [{"a": 1}]
    for _ in range(2):
        with pytest.raises(TableNotFoundError):
            readable = frozenset({TableName("u")})
            await rows(made, sql, sources=frozenset(), readable=readable)


async def test_each_viewer_sees_the_rows_of_system_tables_that_are_theirs() -> None:
    def shown(viewer: PrincipalId | None) -> pa.Table:
        return pa.table({"of": [str(viewer)]})

    made = session({}, {"tasks": shown})
    sql = "SELECT * FROM runtime.tasks"
    for viewer in ("alice", "bob", "alice"):
        found = await rows(made, sql, sources=frozenset(), viewer=PrincipalId(viewer))
        assert found == [{"of": viewer}]
    assert await rows(made, sql) == [{"of": "None"}]


def test_the_least_recently_used_plans_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_CACHED_PLANS", 2)
    kept = KeptPlans()
    effect = Effect(None, True)
    for key in ("a", "b"):
        kept.remember(key, _plan(effect))
    assert kept.recall("a") is not None
    kept.remember("c", _plan(effect))
    assert [kept.recall(key) is not None for key in "abc"] == [True, False, True]


def _plan(effect: Effect) -> StatementPlan:
    made = session({})
    facts = plan_facts.of(made._registered.contexts.main.sql("SELECT 1").logical_plan())
    return StatementPlan(None, facts, effect, False, presence.single_files((), {}), frozenset())
