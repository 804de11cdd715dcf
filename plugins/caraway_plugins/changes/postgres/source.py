"""A PostgreSQL table as a change source: a snapshot of its rows, then the log."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from caraway_core.changes import Changes, Op
from caraway_core.protocols.change_sources import ChangeRequest, SourceBatch
from caraway_plugins.changes.postgres import (
    catalog,
    collecting,
    connecting,
    positions,
    reading,
    slots,
)
from caraway_plugins.changes.postgres.catalog import Table
from caraway_plugins.changes.postgres.collecting import Collector, Key
from caraway_plugins.changes.postgres.positions import PostgresPosition
from caraway_plugins.changes.postgres.reading import Values
from caraway_plugins.changes.postgres.streaming import Stream, StreamLimits


class PostgresChanges:
    """Implements `ChangeSource` for a PostgreSQL table.

    Raises:
        DatasetError: the dataset's path or params are invalid.
    """

    def __init__(self, request: ChangeRequest, limits: StreamLimits | None = None) -> None:
        self._request = request
        self._limits = limits or StreamLimits()
        self._place = connecting.place_of(request)
        self._stream: Stream | None = None

    async def schema(self) -> pa.Schema:
        return (await asyncio.to_thread(self._look_once)).schema

    async def primary_key(self) -> tuple[str, ...]:
        return (await asyncio.to_thread(self._look_once)).key

    async def batches(self, position: str | None) -> AsyncGenerator[SourceBatch, None]:
        at = None if position is None else positions.read(position)
        async with self._connected() as (plain, replication):
            table = await asyncio.to_thread(self._look, plain)
            if at is None or at.is_loading:
                snapshot = await asyncio.to_thread(_begin, plain, replication, table)
                async with aclosing(_loading(plain, table, snapshot)) as loading:
                    async for batch in loading:
                        yield batch
                at = replace(snapshot.at, is_loading=False)
            else:
                await asyncio.to_thread(slots.check, plain, table, at)
            collector = Collector(table, at.source)
            stream = Stream(self._place, replication, collector, at, self._limits)
            async with aclosing(self._following(stream, plain, table, at)) as following:
                async for batch in following:
                    yield batch

    async def confirm(self, position: str) -> None:
        at = positions.read(position)
        if self._stream is not None and not at.is_loading:
            self._stream.confirm(at.lsn)

    async def aclose(self) -> None:
        """Do nothing; the connections are closed when the iteration over `batches` ends."""

    async def _following(
        self, stream: Stream, plain: object, table: Table, at: PostgresPosition
    ) -> AsyncGenerator[SourceBatch, None]:
        def fetch(keys: Sequence[Key]) -> Mapping[Key, Values]:
            return reading.present(plain, table, keys)

        def check() -> None:
            slots.check_table(plain, table)

        try:
            await stream.start()
            self._stream = stream
            nothing = collecting.changes(table, (), (), (), 0)
            yield SourceBatch(nothing, at.text(), is_whole=at.open_lsn == 0)
            async with aclosing(stream.batches(table.oid, fetch, check)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._stream = None
            await stream.aclose()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[object, object]]:
        """Open a connection for statements and a connection for replication."""
        made: list[Any] = []
        try:
            for connect in (connecting.connect, connecting.connect_for_replication):
                made.append(await asyncio.to_thread(connect, self._place))
            yield made[0], made[1]
        except asyncio.CancelledError:
            # A thread may be waiting for the server, which waits for other transactions to end.
            for connection in made:
                await asyncio.to_thread(connecting.stop, connection)
            raise
        finally:
            for connection in made:
                await asyncio.to_thread(connecting.close, connection)

    def _look_once(self) -> Table:
        connection = connecting.connect(self._place)
        try:
            return self._look(connection)
        finally:
            connecting.close(connection)

    def _look(self, connection: object) -> Table:
        request = self._request
        return catalog.look(connection, self._place, request.declared, request.primary_key)


def _begin(plain: object, replication: object, table: Table) -> slots.Snapshot:
    slots.publish(plain, table.place)
    return slots.begin(plain, replication, table)


async def _loading(
    connection: object, table: Table, snapshot: slots.Snapshot
) -> AsyncGenerator[SourceBatch, None]:
    """Yield all rows of a snapshot, after a truncation; the last batch completes the load."""
    pages = reading.snapshot(connection, table, snapshot.name)
    page: Sequence[Values] | None = await asyncio.to_thread(_next, pages)
    number = 0
    while True:
        following = await asyncio.to_thread(_next, pages) if page else None
        is_last = not following
        at = replace(snapshot.at, is_loading=not is_last)
        changes = await asyncio.to_thread(_loaded, table, page or (), snapshot.at, number)
        yield SourceBatch(changes, at.text(), is_whole=is_last)
        if is_last:
            return
        number, page = number + 1, following


def _next(pages: Iterator[Sequence[Values]]) -> Sequence[Values] | None:
    return next(pages, None)


def _loaded(table: Table, rows: Sequence[Values], at: PostgresPosition, number: int) -> Changes:
    ops = [int(Op.UPSERT)] * len(rows)
    received = len(rows)
    if number == 0:
        ops = [int(Op.TRUNCATE), *ops]
        rows = [(None,) * len(table.columns), *rows]
    # All rows of a snapshot have the same log position, before every later change.
    offsets = [positions.offset(at.source, at.lsn, 0)] * len(rows)
    return collecting.changes(table, ops, rows, offsets, received)
