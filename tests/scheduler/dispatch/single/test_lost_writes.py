"""A write to a lake whose executor is lost after its commit has its answer, on a whole cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import ExecutionError, ExecutorLostError
from caraway_core.ids import ExecutorId, QueryId, TableName, new_query_id
from caraway_core.process import write_marks
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from caraway_plugins.sources.delta import DeltaSource
from tests.kit.clusters import InProcessCluster, in_process_cluster
from tests.kit.delta_tables import request

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"]})
WRITES = {
    "INSERT INTO t VALUES (4, 'd'), (5, 'e')": 2,
    "UPDATE t SET v = 'x' WHERE id > 1": 2,
    "DELETE FROM t WHERE id = 3": 1,
}


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_marks, "_DELAYS", Delays(0.0, 0.0))


@asynccontextmanager
async def lake_cluster(tmp_path: Path) -> AsyncIterator[InProcessCluster]:
    deltalake.write_deltalake(tmp_path / "t", ROWS)
    tables = {"t": DeltaSource().resolve(request(tmp_path, "t"))}
    async with in_process_cluster(tmp_path, tables) as made:
        yield made


def lose(cluster: InProcessCluster, *, has_run: bool) -> None:
    """Lose the next executor that gets a statement, before it runs or after it did."""
    execute = cluster.fleet.execute

    async def lost(
        executor_id: ExecutorId, query_id: QueryId, statement: Statement, catalog: str
    ) -> BatchStream:
        cluster.fleet.execute = execute  # type: ignore[method-assign]
        if has_run:
            async for _ in await execute(executor_id, query_id, statement, catalog):
                pass
        raise ExecutorLostError(executor_id, "it is gone")

    cluster.fleet.execute = lost  # type: ignore[method-assign]


async def write(cluster: InProcessCluster, sql: str) -> list[dict[str, Any]]:
    writable = frozenset({TableName("t")})
    statement = Statement(sql, {}, may_write=True, writable=writable)
    stream = await cluster.dispatch.execute(new_query_id(), statement)
    return [row async for batch in stream for row in batch.to_pylist()]


@pytest.mark.parametrize("sql", WRITES, ids=lambda sql: sql.split()[0])
async def test_a_commit_that_is_there_is_the_answer(tmp_path: Path, sql: str) -> None:
    async with lake_cluster(tmp_path) as cluster:
        lose(cluster, has_run=True)
        assert await write(cluster, sql) == [{"count": WRITES[sql]}]
    assert DeltaTable(tmp_path / "t").version() == 1


async def test_a_commit_that_is_not_there_wrote_nothing(tmp_path: Path) -> None:
    async with lake_cluster(tmp_path) as cluster:
        lose(cluster, has_run=False)
        with pytest.raises(ExecutionError, match="no row was written so far"):
            await write(cluster, next(iter(WRITES)))
    assert DeltaTable(tmp_path / "t").version() == 0
