"""A real PostgreSQL followed into a dataset, with crashes on both sides."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from caraway_acceleration.changes.following import Following, Timing
from caraway_acceleration.changes.ingesting import SourcePositions
from caraway_core.changes import Changes
from caraway_core.errors import CarawayError, DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_plugins.changes.postgres.source import PostgresChanges
from caraway_plugins.changes.postgres.streaming import StreamLimits
from caraway_plugins.changes.target import ChangeTarget
from tests.kit.deadlines import eventually
from tests.kit.following import Replica
from tests.kit.postgres import Server, serving
from tests.kit.turns import turn

NAME = TableName("accounts")
IDS = range(40)
TOTAL = 100 * len(IDS)


class Dataset:
    """Applies changes to a replica, and sometimes fails just before or just after."""

    def __init__(self, chance: random.Random) -> None:
        self.replica = Replica("id")
        self.faults = 0.0
        self.mixtures = 0
        self.following: Following | None = None
        self._chance = chance

    def target(self, name: TableName) -> ChangeTarget:
        raise AssertionError("a source reads its events itself")

    async def position(self, name: TableName) -> str | None:
        return self.replica.position

    async def apply(
        self,
        name: TableName,
        changes: Changes,
        request_id: str | None,
        deadline_s: float,
        *,
        source: SourcePositions | None = None,
    ) -> int:
        assert source is not None and source.after == self.replica.position
        fault = self._chance.random()
        if fault < self.faults / 2:
            raise DatasetError("unavailable", "before it was applied")
        self.replica.apply(changes, source.position)
        if sum(row["n"] for row in self.replica.rows.values()) != TOTAL:
            self.mixtures += 1
        if fault < self.faults:
            raise DatasetError("unavailable", "after it was applied")
        return changes.received


class HeldClaim:
    """A claim without competitors."""

    async def acquire(self) -> bool:
        return True

    async def release(self) -> None:
        return


@asynccontextmanager
async def following(server: Server, dataset: Dataset) -> AsyncIterator[list[str]]:
    """Follow without delays between attempts; yields the reported errors."""
    told: list[str] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0.01 if seconds != 5.0 else seconds)

    def tell(error: CarawayError | None) -> None:
        told.append(error.message if error else "")

    request = ChangeRequest(NAME, "postgres", "accounts", server.params)
    source = PostgresChanges(request, StreamLimits(batch_rows=50))
    task = asyncio.create_task(
        Following(NAME, source, dataset, HeldClaim(), tell, Timing(sleep=sleep)).run()
    )
    try:
        yield told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def transaction(chance: random.Random) -> str:
    """Return SQL that moves money and renumbers accounts; the total is constant."""
    one, other = chance.sample(IDS, 2)
    moved = chance.randrange(1, 9)
    return ";".join(
        (
            "BEGIN",
            f"UPDATE accounts SET n = n - {moved} WHERE id = {one}",
            f"UPDATE accounts SET n = n + {moved} WHERE id = {other}",
            f"UPDATE accounts SET id = -1 - id WHERE id = {one} AND n % 3 = 0",
            f"UPDATE accounts SET id = -1 - id WHERE id = -1 - {one}",
            f"DELETE FROM accounts WHERE id = {other}",
            f"INSERT INTO accounts SELECT {other}, {TOTAL} - sum(n), repeat('{moved}', 3000) "
            "FROM accounts",
            "COMMIT",
        )
    )


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        running.execute(
            "CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL, note text)",
            "ALTER TABLE accounts ALTER note SET STORAGE EXTERNAL",
            f"INSERT INTO accounts SELECT g, 100, 'new' FROM generate_series(0, {len(IDS) - 1}) g",
        )
        yield running


async def same(server: Server, dataset: Dataset) -> None:
    """Wait until the dataset has the rows of the table."""
    rows = server.rows("SELECT id, n, note FROM accounts")
    expected = {(id_,): {"id": id_, "n": n, "note": note} for id_, n, note in rows}

    async def is_same() -> bool:
        return dataset.replica.rows == expected

    await eventually(is_same, "the dataset holds what the table holds")


async def test_nothing_is_lost_doubled_or_mixed_over_crashes(server: Server) -> None:
    chance = random.Random(7)
    dataset = Dataset(chance)
    for round_ in range(6):
        dataset.faults = 0.2
        async with following(server, dataset):
            for _ in range(60):
                await asyncio.to_thread(server.execute, transaction(chance))
                await turn()
            if round_ % 2:
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            if round_ == 3:
                dataset.faults = 0.0
                await same(server, dataset)
        # The scheduler is stopped now; changes made meanwhile are applied later.
        await asyncio.to_thread(server.execute, *(transaction(chance) for _ in range(20)))
    dataset.faults = 0.0
    async with following(server, dataset):
        await same(server, dataset)
    assert dataset.mixtures == 0


async def test_a_lost_slot_is_reported_and_causes_a_full_load(server: Server) -> None:
    chance = random.Random(1)
    dataset = Dataset(chance)
    async with following(server, dataset):
        await same(server, dataset)
    server.drop_slots()
    server.execute(transaction(chance))
    async with following(server, dataset) as told:
        await same(server, dataset)
        assert "the replication slot 'caraway_accounts' no longer exists" in told[0]
        await asyncio.to_thread(server.execute, transaction(chance))
        await same(server, dataset)
    assert told[-1] == ""
