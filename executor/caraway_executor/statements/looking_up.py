"""Runs point lookups on an executor, immediately if all the rows are in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from functools import partial

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.ids import TableName
from caraway_core.protocols.dispatch import StreamTraits
from caraway_core.statements import Statement
from caraway_engine.rows.held import Chunks
from caraway_engine.sessions.lookups import PointLookup
from caraway_engine.sessions.sessions import Session
from caraway_engine.stored import StoredVersion

Start = Callable[[Callable[[], list[pa.RecordBatch]]], Awaitable[list[pa.RecordBatch]]]
"""Runs work that may need chunks that are not in memory, and loads them."""


class RowsStream:
    """A result that is already complete."""

    written: TableName | None = None

    def __init__(self, rows: pa.RecordBatch, *, reads_only_catalog: bool) -> None:
        self.schema = rows.schema
        self.reads_only_catalog = reads_only_catalog
        self._rows: pa.RecordBatch | None = rows if rows.num_rows else None
        self.traits = StreamTraits(whole=self._rows)

    @property
    def is_at_end(self) -> bool:
        """True if the rows have ended, so that the reader need not wait to find out."""
        return self._rows is None

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        rows, self._rows = self._rows, None
        self.traits.whole = None
        if rows is None:
            raise StopAsyncIteration
        return rows

    async def aclose(self) -> None:
        """Drop the rows."""
        self._rows = self.traits.whole = None


async def look_up(
    session: Session, statement: Statement, chunks: Chunks, threads: Executor, start: Start
) -> RowsStream | None:
    """Run a statement if it is a point lookup; return None for other statements.

    Raises:
        QueryError: rows that it needs cannot be read, or do not fit in memory.
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
    # As for any statement over changes, the rows differ once there are more changes.
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
