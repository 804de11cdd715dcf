"""Point lookups on an executor: answered at once where all that they need is in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from functools import partial

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import Statement
from caraway_engine.rows.held import Chunks
from caraway_engine.sessions.lookups import PointLookup
from caraway_engine.sessions.sessions import Session
from caraway_engine.stored import StoredVersion

Start = Callable[[Callable[[], list[pa.RecordBatch]]], Awaitable[list[pa.RecordBatch]]]
"""Runs what may read chunks that are not in memory, and brings them."""


class RowsStream:
    """An answer that is there already."""

    written: TableName | None = None

    def __init__(self, rows: pa.RecordBatch, *, reads_only_catalog: bool) -> None:
        self.schema = rows.schema
        self.reads_only_catalog = reads_only_catalog
        self._rows: pa.RecordBatch | None = rows if rows.num_rows else None

    @property
    def at_hand(self) -> pa.RecordBatch | None:
        """All rows of the answer; None where there are none, or they were read."""
        return self._rows

    @property
    def is_at_end(self) -> bool:
        """Whether no more rows will come, so that nobody has to wait to find out."""
        return self._rows is None

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        rows, self._rows = self._rows, None
        if rows is None:
            raise StopAsyncIteration
        return rows

    async def aclose(self) -> None:
        self._rows = None


async def look_up(
    session: Session, statement: Statement, chunks: Chunks, threads: Executor, start: Start
) -> RowsStream | None:
    """Answer a statement if it is a point lookup; None for any other.

    Raises:
        QueryError: rows that it needs cannot be read, or do not fit.
    """
    lookup = session.lookups.find(statement)
    if lookup == "unknown":
        learn = partial(session.lookups.learn, statement)
        await asyncio.get_running_loop().run_in_executor(threads, learn)
        lookup = session.lookups.find(statement)
    if lookup is None or lookup == "unknown":
        return None
    version = session.versions.by_name[lookup.table]
    log = statement.logs.get(version.spec.key, ())
    rows = _at_hand(version, lookup, log)
    if rows is None:
        rows = await start(partial(_rows, version, lookup, log, chunks))
    # As of any statement over changes: once there are more of them its rows are others.
    return RowsStream(lookup.answer(rows), reads_only_catalog=not log)


def _at_hand(version: StoredVersion, lookup: PointLookup, log: Log) -> list[pa.RecordBatch] | None:
    found = []
    for key in lookup.keys:
        rows = version.rows_at_hand(lookup.known.columns, key, log)
        if rows is None:
            return None
        found.append(rows)
    return found


def _rows(
    version: StoredVersion, lookup: PointLookup, log: Log, chunks: Chunks
) -> list[pa.RecordBatch]:
    columns = lookup.known.columns
    return [version.rows_of(columns, key, chunks, log) for key in lookup.keys]
