"""Statements that use the sources of datasets, and statements that must not."""

from typing import cast

import pyarrow as pa
import pytest

from caraway_acceleration.changes.changing import Changeable
from caraway_acceleration.changes.ingesting import BaseWithLog
from caraway_acceleration.passthrough.through import SourceDispatch
from caraway_acceleration.service import Accelerations
from caraway_acceleration.sources import PassthroughSources
from caraway_core.changes import Changes
from caraway_core.ids import ExecutorId, QueryId, TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from caraway_scheduler.dispatch.in_process import InProcessDispatch
from tests.kit.engine import memory, snapshot

ORDERS = TableName("orders")


class Counting(InProcessDispatch):
    """Counts executed statements."""

    def __init__(self) -> None:
        super().__init__(LocalExecutor(EngineSettings(2)), ExecutorId("e"))
        self.executed: list[Statement] = []

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        stream = await super().execute(query_id, statement)
        self.executed.append(statement)
        return stream


class Known:
    def __init__(self, sources: PassthroughSources) -> None:
        self._sources = sources
        self.refreshes: list[TableName] = []

    def sources(self) -> PassthroughSources:
        return self._sources

    def mentioned(self, sql: str) -> frozenset[TableName]:
        return frozenset()

    def may_keep(self, sql: str) -> bool:
        return True

    async def caught_up(self, sql: str) -> None:
        pass

    def changeable(self, name: TableName) -> Changeable:
        raise AssertionError("no dataset has a log")

    async def apply(
        self,
        name: TableName,
        changes: Changes,
        request_id: str | None,
        deadline_s: float,
        *,
        upon: BaseWithLog | None = None,
    ) -> int:
        raise AssertionError("no dataset has a log")

    async def refreshed(self, name: TableName) -> None:
        self.refreshes.append(name)

    def damaged(self, name: TableName) -> None:
        pass


async def _asked(
    sql: str, sources: PassthroughSources
) -> tuple[list[dict[str, object]], Counting, Known]:
    inner, known = Counting(), Known(sources)
    dispatch = SourceDispatch(inner, cast(Accelerations, known))
    tables = snapshot(
        {
            "orders": memory(id=[1, 2]),
            "caraway_source.orders": memory(id=[1, 2, 42]),
            "others": memory(id=[7]),
            "late": "SELECT id FROM orders WHERE id > 1",
        }
    )
    try:
        assert not await dispatch.install(tables)
        writable = frozenset({TableName("caraway_source.orders"), TableName("others")})
        stream = await dispatch.execute(
            new_query_id(), Statement(sql, {}, True, writable, sources=frozenset())
        )
        batches = [batch async for batch in stream]
        return pa.Table.from_batches(batches, stream.schema).to_pylist(), inner, known
    finally:
        await dispatch.aclose()


@pytest.mark.parametrize(
    ("sql", "ids"),
    [
        ("SELECT id FROM orders WHERE id = 42", [42]),
        ("SELECT id FROM late WHERE id = 42", [42]),
        ("SELECT id FROM orders WHERE id = 420", []),
        ("SELECT o.id FROM orders o, others WHERE o.id = others.id + 35", [42]),
    ],
)
async def test_the_source_answers_if_the_dataset_has_no_rows(sql: str, ids: list[int]) -> None:
    found, inner, _ = await _asked(sql, PassthroughSources(answering=frozenset({ORDERS})))
    assert [row["id"] for row in found] == ids
    assert len(inner.executed) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM others WHERE id = 42",
        "SELECT 'orders' AS a WHERE 'orders' = 'late'",
        "SELECT id AS orders FROM others AS late WHERE id = 42 -- orders",
        "WITH orders AS (SELECT 1 AS id WHERE false) SELECT id FROM orders",
        'SELECT id AS "TableScan: orders" FROM others WHERE id = 42',
        "INSERT INTO others SELECT id FROM orders WHERE id = 42",
    ],
)
async def test_a_statement_without_such_a_dataset_is_executed_once(sql: str) -> None:
    _, inner, _ = await _asked(sql, PassthroughSources(answering=frozenset({ORDERS})))
    assert len(inner.executed) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO orders VALUES (9)",
        "insert/**/into Orders (ID) select max(id) + 7 from orders",
        "/* x */ -- y\n INSERT INTO caraway . public . orders VALUES (9)",
        "INSERT INTO \"orders\" SELECT 9 WHERE 'INSERT INTO others' <> 'x'",
    ],
)
async def test_inserted_rows_go_to_the_source(sql: str) -> None:
    found, inner, known = await _asked(sql, PassthroughSources(taking=frozenset({ORDERS})))
    assert found == [{"count": 1}]
    assert inner.executed[0].targets == {ORDERS: "caraway_source.orders"}
    assert known.refreshes == [ORDERS]


@pytest.mark.parametrize(
    "sql", ["INSERT INTO others VALUES (1)", "SELECT 'INSERT INTO orders VALUES (1)' AS a"]
)
async def test_other_statements_are_unchanged(sql: str) -> None:
    _, inner, known = await _asked(sql, PassthroughSources(taking=frozenset({ORDERS})))
    assert [each.targets for each in inner.executed] == [{}]
    assert known.refreshes == []
