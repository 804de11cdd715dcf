"""EXPLAIN shows the statements that databases answer after the rows of the engine."""

from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.work import SourceQuery
from caraway_engine.sessions.answered import PLAN_TYPE, AnsweredExplain

SCHEMA = pa.schema([("plan_type", pa.string()), ("plan", pa.string())])
OWN = pa.record_batch({"plan_type": ["physical_plan"], "plan": ["DataSourceExec"]})


async def rows() -> AsyncIterator[Any]:
    yield OWN


def query(sql: str) -> SourceQuery:
    query: Any = SourceQuery.__new__(SourceQuery)
    object.__setattr__(query, "sql", sql)
    return query  # type: ignore[no-any-return]


async def test_statements_come_after_the_plan_and_once() -> None:
    stream = AnsweredExplain(rows(), lambda: [query("SELECT 1"), query("SELECT 2")], SCHEMA)
    assert await anext(stream) is OWN
    last = (await anext(stream)).to_pyarrow()
    assert last.to_pydict() == {
        "plan_type": [PLAN_TYPE] * 2,
        "plan": ["SELECT 1", "SELECT 2"],
    }
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_they_are_asked_for_after_the_last_row_of_the_plan() -> None:
    asked: list[str] = []

    def queries() -> list[SourceQuery]:
        asked.append("queries")
        return []

    stream = AnsweredExplain(rows(), queries, SCHEMA)
    await anext(stream)
    assert asked == []
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert asked == ["queries"]
