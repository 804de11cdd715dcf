"""Search functions through Flight SQL: parameters, prepared statements and views."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from caraway_core.ids import ExecutorId
from caraway_core.tables import TableSpec
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from tests.gateway.flight.serving import Serving, serving
from tests.gateway.flight.sql.driving import drive, fetched
from tests.kit.engine import memory, snapshot
from tests.kit.searching import searching

TABLES: dict[str, TableSpec | str] = {
    "docs": memory(id=[1, 2, 3], body=["red", "blue", "red red"]),
    "hits": "SELECT id, score FROM text_search(docs, 'red') WHERE id < 3",
}


@asynccontextmanager
async def _searching() -> AsyncIterator[Serving]:
    inner = InProcessDispatch(LocalExecutor(EngineSettings(2)), ExecutorId("here"))
    assert await inner.install(snapshot(TABLES)) == {}
    dispatch, _ = searching(inner)
    async with serving(dispatch=dispatch) as server:
        yield server


async def test_statements_and_views_search() -> None:
    async with _searching() as server:
        sql = "SELECT id, score FROM text_search(docs, $1, 2) WHERE id > $2 ORDER BY score DESC"
        rows = await drive(server, fetched(sql, "red", 1))
        assert rows.to_pylist() == [{"id": 3, "score": 6.0}, {"id": 2, "score": 0.0}]
        rows = await drive(server, fetched("SELECT id FROM hits LIMIT 1"))
        assert rows.to_pylist() == [{"id": 1}]


async def test_a_prepared_search_runs_with_each_text() -> None:
    async with _searching() as server:

        def prepared(connection: Any) -> list[Any]:
            with connection.cursor() as cursor:
                sql = "SELECT id, score FROM text_search(docs, ?, 1) ORDER BY score DESC"
                assert cursor.adbc_prepare(sql).names == ["$1"]
                found = []
                for text in ("red", "blue"):
                    cursor.execute(sql, (text,))
                    found.append(cursor.fetchone())
                return found

        assert await drive(server, prepared) == [(3, 6.0), (2, 4.0)]
