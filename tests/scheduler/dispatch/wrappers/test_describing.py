"""Statements that name tables of source catalogs are planned again once these are described."""

from collections.abc import Collection
from typing import Any

import pytest

from caraway_core.errors import InvalidQueryError, TableNotFoundError
from caraway_core.ids import CatalogVersion, QueryId, TableName
from caraway_core.statements import Statement
from caraway_core.statements.questions import ParameterQuestion
from caraway_scheduler.dispatch.wrappers.describing import DescribingDispatch

ID = QueryId("q")


class Planner:
    """Finds the tables that are known, in the order that statements name them."""

    def __init__(self, *wanted: str) -> None:
        self.wanted = wanted
        self.known = set[str]()
        self.plans = 0

    async def execute(self, _query_id: QueryId, _statement: Statement) -> str:
        self.plans += 1
        for each in self.wanted:
            if each not in self.known:
                raise TableNotFoundError(f"table '{each}' not found", TableName(each))
        return "rows"

    async def ask(self, question: Any) -> str:
        return await self.execute(ID, question.statement)


class Tables:
    """Describes what exists."""

    def __init__(self, planner: Planner, *there: str) -> None:
        self.planner, self.there = planner, there
        self.asked: list[str] = []

    async def load(
        self, missing: TableName, sql: str, readable: Collection[TableName] | None
    ) -> bool:
        self.asked.append(missing)
        if missing in self.there:
            self.planner.known.add(missing)
        return missing in self.there


def dispatch(planner: Any, tables: Tables) -> DescribingDispatch:
    return DescribingDispatch(planner, tables)


async def test_it_is_planned_again_for_each_missing_table() -> None:
    planner = Planner("a.b.c", "a.b.d")
    tables = Tables(planner, "a.b.c", "a.b.d")
    over = dispatch(planner, tables)
    assert await over.execute(ID, Statement("", {})) == "rows"  # type: ignore[comparison-overlap]
    assert (planner.plans, tables.asked) == (3, ["a.b.c", "a.b.d"])
    assert await over.ask(ParameterQuestion(Statement("", {}))) == "rows"  # type: ignore[comparison-overlap]
    assert planner.plans == 4


async def test_what_stays_missing_is_asked_for_once() -> None:
    planner = Planner("a.b.c")
    tables = Tables(planner)
    with pytest.raises(TableNotFoundError, match=r"'a.b.c'"):
        await dispatch(planner, tables).execute(ID, Statement("", {}))
    assert (planner.plans, tables.asked) == (1, ["a.b.c"])
    tables.there = ("a.b.c",)
    planner.known = Forgetful()
    with pytest.raises(TableNotFoundError):
        await dispatch(planner, tables).execute(ID, Statement("", {}))
    assert planner.plans == 3


class Forgetful(set[str]):
    """Keeps nothing, as an engine that cannot register the table."""

    def add(self, _item: str) -> None:
        return


async def test_a_statement_that_names_its_snapshot_reads_no_others() -> None:
    planner = Planner("a.b.c")
    tables = Tables(planner, "a.b.c")
    bound = Statement("", {}, catalog_version=CatalogVersion(1))
    with pytest.raises(TableNotFoundError):
        await dispatch(planner, tables).execute(ID, bound)
    assert not tables.asked


async def test_other_errors_pass() -> None:
    class Wrong(Planner):
        async def execute(self, _query_id: QueryId, _statement: Statement) -> str:
            raise InvalidQueryError("no column")

    planner = Wrong()
    with pytest.raises(InvalidQueryError, match="no column"):
        await dispatch(planner, Tables(planner)).execute(ID, Statement("", {}))
