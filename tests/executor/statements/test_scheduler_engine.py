"""The engine of a scheduler: behind a wall that only values pass, and in another process."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import CatalogMovedError, ShuttingDownError, TableNotFoundError
from caraway_core.ids import CatalogVersion, ExecutorId, PrincipalId, TableName, new_query_id
from caraway_core.protocols.fleet import Pinned
from caraway_core.statements import Statement, TableWrite, ViewFacts
from caraway_core.statements.questions import WriteQuestion
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.routing import Decision, Here, PlanId, Question, Staged, Whole, Workers
from caraway_engine.stages import Policy
from caraway_executor.engines.planner import IsolatedPlanner
from tests.kit.engine import memory, snapshot
from tests.kit.engine_processes import fork_server
from tests.kit.storing import order, read_back
from tests.kit.tables import parquet
from tests.kit.values import WalledEngine

ROWS = pa.table({"v": range(40)})
WORKERS = Workers((ExecutorId("e1"), ExecutorId("e2")), 1 << 30, Policy(small_table_bytes=0))
T = TableName("t")


Engine = WalledEngine | IsolatedPlanner
Make = Callable[[], Engine]


def isolated() -> IsolatedPlanner:
    return IsolatedPlanner(EngineSettings(2), fork_server())


@pytest.fixture(params=["walled", "isolated"])
def make(request: pytest.FixtureRequest) -> Make:
    return isolated if request.param == "isolated" else lambda: WalledEngine(EngineSettings(2))


@asynccontextmanager
async def engine(make: Make) -> AsyncIterator[Engine]:
    made = make()
    try:
        yield made
    finally:
        await made.aclose()


async def ask(of: Engine, sql: str, version: int, plan: str = "p") -> Decision:
    statement = Statement(sql, {}, catalog_version=CatalogVersion(version))
    return await of.decide(Question(PlanId(plan), statement, WORKERS))


async def rows(of: Engine, statement: Statement) -> list[object]:
    stream = await of.execute(new_query_id(), statement)
    return [row async for batch in stream for row in batch.to_pylist()]


async def test_a_snapshot_is_seen_once_it_is_published(make: Make, tmp_path: Path) -> None:
    async with engine(make) as of:
        with pytest.raises(ShuttingDownError):
            await rows(of, Statement("SELECT 1", {}))
        t = parquet(tmp_path / "t", ROWS, 4)
        views = {"x": "SELECT v FROM t", "y": "SELECT * FROM z"}
        prepared = await of.prepare(snapshot({"t": t, **views}))
        assert prepared.failed.keys() == {"y"}
        assert prepared.views == {
            "x": ViewFacts(frozenset({T})),
            "y": ViewFacts(missing=TableName("z")),
        }
        with pytest.raises(CatalogMovedError):
            await ask(of, "SELECT v FROM t", 1)
        await of.publish()
        assert isinstance(await ask(of, "SELECT v FROM x", 1), Staged)
        with pytest.raises(TableNotFoundError) as raised:
            await ask(of, "SELECT * FROM z", 1)
        assert raised.value.table == "z"


async def test_statements_name_their_catalog_until_it_is_released(make: Make) -> None:
    async with engine(make) as of:
        for version in (1, 2, 3):
            await of.prepare(snapshot({"t": memory(a=[version])}, version=version))
            await of.publish()
        for version in (1, 2, 3):
            statement = Statement("SELECT a FROM t", {}, catalog_version=CatalogVersion(version))
            assert await rows(of, statement) == [{"a": version}]
            assert isinstance(await ask(of, "SELECT a FROM t", version), Whole)
        await of.release(Pinned(CatalogVersion(3), frozenset({CatalogVersion(1)})))
        with pytest.raises(CatalogMovedError):
            await ask(of, "SELECT a FROM t", 2)
        for version in (1, 3):
            assert isinstance(await ask(of, "SELECT a FROM t", version), Whole)


async def test_system_tables_show_what_their_viewer_may_see(make: Make) -> None:
    def made(viewer: PrincipalId | None) -> pa.Table:
        return pa.table({"who": [str(viewer)]})

    async with engine(make) as of:
        await of.prepare(snapshot({}, {"mine": made}))
        await of.publish()
        assert isinstance(await ask(of, "SELECT who FROM runtime.mine", 1), Here)
        mine = Statement("SELECT who FROM runtime.mine", {}, viewer=PrincipalId("ann"))
        assert await rows(of, mine) == [{"who": "ann"}]


async def test_what_would_be_written_is_told(make: Make) -> None:
    async with engine(make) as of:
        await of.prepare(snapshot({"t": memory(a=[1])}))
        await of.publish()
        insertion = Statement("INSERT INTO t VALUES (2)", {}, may_write=True)
        assert await of.ask(WriteQuestion(insertion)) == TableWrite(T, "Insert Into")
        assert await of.ask(WriteQuestion(Statement("SELECT 1", {}))) is None


async def test_rows_that_are_there_are_stored(make: Make, tmp_path: Path) -> None:
    batch = pa.record_batch({"plan": ["a", "b"]})
    async with engine(make) as of:
        stored = await of.stored(batch, order(tmp_path))
        assert (await read_back(tmp_path, stored)).to_pylist() == batch.to_pylist()
        none = await of.stored(batch.slice(0, 0), order(tmp_path, key="none"))
        assert (await read_back(tmp_path, none, key="none")).num_rows == 0
