"""One PostgreSQL server for all tests of this package, with a table and a dataset per test."""

import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest, SourceBatch
from caraway_plugins.changes.postgres.source import PostgresChanges
from caraway_plugins.changes.postgres.streaming import StreamLimits
from tests.kit.following import Replica
from tests.kit.postgres import Server, serving

_NUMBERS = itertools.count(1)


@dataclass
class Followed:
    """A table, and a dataset that replicates it."""

    server: Server
    table: str
    replica: Replica
    params: dict[str, str] = field(default_factory=dict)
    declared: tuple[pa.Field, ...] = ()
    primary_key: tuple[str, ...] = ()

    def source(self, limits: StreamLimits | None = None) -> PostgresChanges:
        request = ChangeRequest(
            TableName(self.table),
            "postgres",
            f"public.{self.table}",
            {**self.server.params, **self.params},
            self.declared,
            self.primary_key,
        )
        return PostgresChanges(request, limits)

    @asynccontextmanager
    async def following(self, limits: StreamLimits | None = None) -> AsyncIterator["Feed"]:
        source = self.source(limits)
        batches = source.batches(self.replica.position)
        try:
            yield Feed(self.replica, source, batches)
        finally:
            await batches.aclose()
            await source.aclose()

    def sql(self, *statements: str) -> None:
        self.server.execute(*(text.replace("$t", self.table) for text in statements))

    def together(self, *statements: str) -> None:
        self.server.transact(*(text.replace("$t", self.table) for text in statements))


@dataclass
class Feed:
    replica: Replica
    source: PostgresChanges
    batches: AsyncGenerator[SourceBatch, None]

    async def next(self, confirms: bool = True) -> SourceBatch:
        """Apply one batch; skip those that only report that the source is available."""
        batch = await anext(self.batches)
        while batch.position == self.replica.position and not batch.changes.rows.num_rows:
            batch = await anext(self.batches)
        self.replica.apply(batch.changes, batch.position)
        if confirms:
            await self.source.confirm(batch.position)
        return batch

    async def load(self) -> None:
        """Apply the snapshot."""
        while not (await self.next()).is_whole:
            pass


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def followed(postgres: Server) -> Iterator[Followed]:
    """A table with an id and a text column and two rows, and a dataset that replicates it."""
    name = f"t{next(_NUMBERS)}"
    postgres.execute(
        f"CREATE TABLE {name} (id bigint PRIMARY KEY, note text)",
        f"INSERT INTO {name} VALUES (1, 'one'), (2, 'two')",
    )
    yield Followed(postgres, name, Replica("id"))
    postgres.drop_slots()
