"""A fleet that is in no Ray cluster calls executors at the addresses that are stored."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from caraway_core.concurrency import tasks
from caraway_core.concurrency.backoff import Delays
from caraway_core.errors import (
    CarawayError,
    ExecutorLostError,
    InvalidQueryError,
    NotDistributableError,
)
from caraway_core.ids import ExecutorId, TableName, new_query_id
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.fleet import TableCatalog
from caraway_core.settings import Address
from caraway_core.statements import Statement
from caraway_core.tables import FileScan, FilesTable
from caraway_executor.endpoints.channel_server import Calling, ChannelServer
from caraway_scheduler.dispatch.fleets import ray_fleet, reaching
from caraway_scheduler.dispatch.fleets.own_files import OwnFiles
from caraway_scheduler.dispatch.fleets.ray_fleet import RayFleet
from tests.kit.engine import memory
from tests.kit.fragments import task
from tests.kit.reached_executors import ONE, TOKEN, Remote, executor
from tests.kit.workers import catalog

TWO = ExecutorId("e2")
ROWS = pa.schema([("v", pa.int64())])
MANY = "SELECT value AS v, repeat('x', 60) AS s FROM generate_series(1, 400000)"
Places = dict[ExecutorId, Address]


class Driver:
    """A connection to Ray that does not exist yet."""

    is_joined = False

    async def join(self) -> None:
        self.is_joined = True

    async def leave(self, _within_s: float = 0.0) -> None:
        self.is_joined = False


@asynccontextmanager
async def fleet(places: Places, driver: Driver | None = None) -> AsyncIterator[RayFleet]:
    async def stored() -> Mapping[ExecutorId, Address]:
        return dict(places)

    made = RayFleet(TOKEN, driver or Driver(), stored)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        await made.aclose()


async def heard(made: RayFleet, *executors: ExecutorId) -> None:
    """Send heartbeats until exactly these executors answer."""
    async with asyncio.timeout(30):
        while {each.executor_id for each in await made.describe("here")} != set(executors):
            await asyncio.sleep(0)


async def values(stream: BatchStream) -> list[Any]:
    return [each for batch in [b async for b in stream] for each in batch.column(0).to_pylist()]


async def ask(made: RayFleet, sql: str = "SELECT sum(v) FROM t") -> list[Any]:
    stream = await made.execute(ONE, new_query_id(), Statement(sql, {}), "here")
    return await values(stream)


def numbers() -> TableCatalog:
    return catalog({"t": memory(v=[1, 2, 3])})


async def test_executors_answer_without_ray() -> None:
    async with executor() as (actor, server), fleet({ONE: server.place}) as made:
        await heard(made, ONE)
        assert await made.install(ONE, numbers()) == {}
        await made.probe(ONE)
        assert await ask(made) == [6]
        assert len(await ask(made, MANY)) == 400_000
        assert "next" in actor.calls
        with pytest.raises(InvalidQueryError, match="table 'gone' not found"):
            await ask(made, "SELECT * FROM gone")


async def test_a_task_without_exchanges_runs_and_one_with_an_exchange_is_refused() -> None:
    work = task("SELECT v FROM t WHERE v > 1", {"t": ROWS})
    async with executor() as (_, server), fleet({ONE: server.place}) as made:
        await heard(made, ONE)
        await made.install(ONE, numbers())
        assert sorted(await values(await made.stream(ONE, work, ()))) == [2, 3]
        with pytest.raises(NotDistributableError, match="'e1' is reached without the head"):
            await made.run_task(ONE, work, ())


async def test_catalogs_are_installed_one_after_another_even_if_a_channel_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = asyncio.Event(), threading.Event()
    at_once = most = 0
    async with executor() as (actor, server):
        loop, install = asyncio.get_running_loop(), actor._worker.install

        def slow(given: TableCatalog) -> Mapping[TableName, str]:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            loop.call_soon_threadsafe(begun.set)
            go_on.wait(30)
            at_once -= 1
            return install(given)

        monkeypatch.setattr(actor._worker, "install", slow)
        async with fleet({ONE: server.place}) as made:
            await heard(made, ONE)
            installing = tasks.begin(made.install(ONE, numbers()))
            await begun.wait()
        with pytest.raises(ExecutorLostError):
            await installing
        async with fleet({ONE: server.place}) as made:
            await heard(made, ONE)
            again = tasks.begin(made.install(ONE, numbers()))
            await heard(made, ONE)
            go_on.set()
            assert await again == {}
            assert await ask(made) == [6]
        assert most == 1


async def test_files_of_the_scheduler_are_sent(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "a.parquet"
    path.parent.mkdir()
    rows = pa.table({"v": [1, 2]})
    parquet.write_table(rows, path)
    scan = FileScan("parquet", (str(path),), rows.schema, ".parquet")
    web = catalog({"t": FilesTable(rows.schema, (scan,))})
    (file,) = OwnFiles(path.parent).find(web.tables)
    # A file with another size under the same path is not the same file.
    unseen = replace(web, files=(replace(file, size_bytes=file.size_bytes + 1),))
    copies = tmp_path / "copies"
    async with executor(ONE, copies) as (_, server), fleet({ONE: server.place}) as made:
        await heard(made, ONE)
        assert await made.install(ONE, unseen) == {}
        path.unlink()
        assert await ask(made) == [3]


async def test_executors_stay_the_same_when_the_cluster_is_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver()
    async with executor() as (actor, server), fleet({ONE: server.place}, driver) as made:
        await heard(made, ONE)
        await made.install(ONE, numbers())
        stream = await made.execute(ONE, new_query_id(), Statement(MANY, {}), "here")
        peer = made._peers[ONE]
        assert not peer.is_on_ray
        wanted: list[set[ExecutorId]] = []

        def find(known: set[ExecutorId]) -> Mapping[ExecutorId, Any]:
            wanted.append(known)
            return {} if ONE in known else {ONE: Remote(actor)}

        monkeypatch.setattr(ray_fleet, "find", find)
        await made.join()
        async with asyncio.timeout(30):
            while not peer.is_on_ray:
                await made.describe("here")
        assert made._peers[ONE] is peer
        assert len(await values(stream)) == 400_000  # It was begun before.
        assert await ask(made) == [6]
        await made.describe("here")
        assert wanted[0] == set() and wanted[-1] == {ONE}


class SlowDriver(Driver):
    """A connection to Ray that is slow to disconnect."""

    def __init__(self) -> None:
        self.is_joined = True
        self.may_leave = asyncio.Event()

    async def leave(self, _within_s: float = 0.0) -> None:
        await self.may_leave.wait()


async def test_executors_answer_while_ray_disconnects(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = SlowDriver()
    async with executor() as (actor, server), fleet({ONE: server.place}, driver) as made:
        monkeypatch.setattr(ray_fleet, "find", lambda known: {ONE: Remote(actor)})
        await heard(made, ONE)
        assert made._peers[ONE].is_on_ray
        actor._worker.install(numbers())
        leaving = tasks.begin(made.leave())
        async with asyncio.timeout(30):
            while ONE not in made._peers or made._peers[ONE].is_on_ray:
                await made.describe("here")
        assert await ask(made) == [6]
        assert not leaving.done()
        driver.may_leave.set()
        await leaving
        assert await ask(made) == [6]


async def test_an_executor_whose_channel_breaks_is_reached_where_it_listens_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reaching, "_DELAYS", Delays(0, 0))
    places: Places = {}
    async with fleet(places) as made:
        async with executor() as (_, server):
            places[ONE] = server.place
            await heard(made, ONE)
        await heard(made)
        async with executor() as (_, server):
            await heard(made)  # Nobody has stored the new address yet.
            places[ONE] = server.place
            await heard(made, ONE)


async def test_an_address_that_belongs_to_another_executor_now_is_not_used() -> None:
    async with executor(TWO) as (actor, server), fleet({ONE: server.place}) as made:
        async with asyncio.timeout(30):
            while actor.calls.count("describe") < 3:
                assert await made.describe("here") == []
        assert made._peers == {}


async def test_an_executor_that_knows_another_token_is_not_found() -> None:
    async with executor() as (actor, server):
        made = RayFleet("another", Driver(), lambda: _places(server))  # type: ignore[arg-type]
        for _ in range(3):
            assert await made.describe("here") == []
        await made.aclose()
        assert actor.calls == []


async def _places(server: ChannelServer) -> Mapping[ExecutorId, Address]:
    return {ONE: server.place}


async def test_only_calls_of_schedulers_are_answered() -> None:
    async with executor() as (actor, server), fleet({ONE: server.place}) as made:
        await heard(made, ONE)
        for name in ("run", "drain", "_standing", "__class__"):
            with pytest.raises(CarawayError, match="no call"):
                await Calling(actor)(name, b"")
