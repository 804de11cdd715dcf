"""Routes statements over accelerated datasets to their sources, where the manifest says so.

INSERT statements write to the source and end once the dataset has the rows. A query without rows is
planned again over the source, if `on_zero_results` says so.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from caraway_acceleration.changes import changing
from caraway_acceleration.changes.early_entries import EarlyRows
from caraway_acceleration.service import Accelerations
from caraway_acceleration.versions.making import DamagedDatasets
from caraway_core.errors import (
    CarawayError,
    DatasetDamagedError,
    MovedOnError,
    QueryError,
    SourceNotReadError,
    TableNotFoundError,
)
from caraway_core.ids import QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream, Dispatch
from caraway_core.protocols.wrapped_streams import WrappedStream
from caraway_core.sqltext import writing
from caraway_core.statements import GivenRows, Statement, TableWrite
from caraway_core.statements.questions import WriteQuestion
from caraway_scheduler.catalog.states import source_of
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch

logger = logging.getLogger(__name__)
_TRIES = 16
_DEADLINE_S = 60.0
_COUNTED = "SELECT arrow_cast({}, 'UInt64') AS count"


class SourceDispatch(WrappedDispatch):
    """A dispatch that binds statements to the sources of accelerated datasets where necessary."""

    def __init__(
        self,
        inner: Dispatch,
        accelerations: Accelerations,
        explain_missing: Callable[[TableNotFoundError], QueryError] = lambda exc: exc,
    ) -> None:
        """Take what explains why a table is missing: its dataset may still be loading."""
        super().__init__(inner)
        self._accelerations = accelerations
        self._explain_missing = explain_missing

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan a statement and start it.

        Raises:
            DatasetLoadingError: it reads a table that is not loaded yet.
            QueryError: it cannot be planned or started.
        """
        try:
            stream = await self._execute(query_id, statement)
        except TableNotFoundError as exc:
            if statement.readable is not None and exc.table not in statement.readable:
                raise
            raise self._explain_missing(exc) from exc
        except DatasetDamagedError as exc:
            self._accelerations.damaged(exc.table)
            raise
        if stream.is_at_end:
            return stream
        return _Watched(stream, self._accelerations)

    async def _execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        accelerations = self._accelerations
        await accelerations.caught_up(statement.sql)
        sources = accelerations.sources()
        written = sources.taking | sources.logged
        given = statement.given
        if given is not None and given.target in sources.logged:
            logged = await self._logged(statement, given, accelerations)
            if logged is not None:
                return logged
        if given is not None and given.replaces:
            # Its rows would be added to those that are there.
            raise MovedOnError(
                f"dataset '{given.target}' no longer has a log; nothing is written; try again"
            )
        if statement.writable and written and writing.may_change(statement.sql):
            write = await self._inner.ask(WriteQuestion(statement))
            if write is not None and write.table in sources.logged:
                return await self._changed(query_id, statement, write, accelerations)
            if write is not None and write.table in sources.taking:
                target = {write.table: source_of(write.table)}
                inserted = replace(statement, targets=target)
                stream = await self._inner.execute(query_id, inserted)
                return _Inserted(stream, write.table, accelerations)
        if sources.answering:
            # An answer without rows may have to be read elsewhere, so its rows must pass here.
            statement = replace(statement, offer=None)
        stream = await self._inner.execute(query_id, statement)
        if not sources.answering or stream.written is not None:
            return stream
        answering = {name: source_of(name) for name in sources.answering}
        again = replace(statement, bound=answering)
        return _Answered(stream, self._inner, query_id, again)

    async def _logged(
        self, statement: Statement, given: GivenRows, accelerations: Accelerations
    ) -> BatchStream | None:
        """Log given rows as they are, without an engine; None if one has to look at them first."""
        assert given.target is not None
        if source_of(given.target) not in statement.writable or statement.store is not None:
            return None
        dataset = accelerations.changeable(given.target)
        changes = given.changes if isinstance(given, EarlyRows) else None
        if not changing.fits(changes, dataset):
            changes = await asyncio.to_thread(
                changing.given, given.rows, dataset, replaces=given.replaces
            )
        if changes is None:
            return None
        await accelerations.apply(given.target, changes, None, _DEADLINE_S)
        return changing.CountStream(changes.received, given.target)

    async def _changed(
        self,
        query_id: QueryId,
        statement: Statement,
        write: TableWrite,
        accelerations: Accelerations,
    ) -> BatchStream:
        """Compute the rows that a statement changes, and log them; retry after concurrent changes.

        Raises:
            CarawayError: nothing is changed, or the error describes the state.
        """
        count = None
        for _ in range(_TRIES):
            dataset = accelerations.changeable(write.table)
            logs = {dataset.upon.base: dataset.upon.log}
            asking = replace(statement, as_changes=True, store=None, logs=logs)
            try:
                rows = await changing.collected(await self._inner.execute(query_id, asking))
                # Keys are compared one by one; others are answered meanwhile.
                changes = await asyncio.to_thread(changing.changes_of, write, rows, dataset)
                count = changes.received
                # Rows without a key can be added to any state.
                upon = dataset.upon if dataset.primary else None
                if count:
                    await accelerations.apply(write.table, changes, None, _DEADLINE_S, upon=upon)
                break
            except MovedOnError:
                count = None
                await accelerations.caught_up(statement.sql)
        if count is None:
            raise MovedOnError(
                f"dataset '{write.table}': too many concurrent changes; run the statement again"
            )
        if statement.store is None:
            return changing.CountStream(count, write.table)
        counted = Statement(_COUNTED.format(count), {}, store=statement.store)
        stream = WrappedStream(await self._inner.execute(query_id, counted))
        stream.written = write.table
        return stream

    def must_ask(self, sql: str) -> bool:
        """Return whether another scheduler may have changed what a statement reads."""
        return bool(self._accelerations.mentioned(sql))

    def may_keep(self, sql: str) -> bool:
        """Return whether an answer holds until the state of the catalog here is another one."""
        return self._accelerations.may_keep(sql)

    async def caught_up(self, sql: str) -> None:
        """Have a statement read all that is acknowledged. Raises UnavailableError."""
        await self._accelerations.caught_up(sql)


class _Watched(WrappedStream):
    """A stream that reports damaged rows that appear later."""

    def __init__(self, stream: BatchStream, damaged: DamagedDatasets) -> None:
        super().__init__(stream)
        self._damaged = damaged

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await anext(self._batches)
        except DatasetDamagedError as exc:
            self._damaged.damaged(exc.table)
            raise


class _Inserted(WrappedStream):
    """The answer to an INSERT, which ends once the rows can be read."""

    is_at_end = False

    def __init__(
        self, stream: BatchStream, dataset: TableName, accelerations: Accelerations
    ) -> None:
        super().__init__(stream)
        self.written = dataset
        self._accelerations = accelerations

    async def __anext__(self) -> pa.RecordBatch:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            try:
                await self._accelerations.refreshed(self.written or TableName(""))
            except CarawayError as exc:
                # The rows are stored in the source; a later refresh loads them.
                extra = {"dataset": self.written, "cause": exc.message}
                logger.warning(
                    "refresh after an INSERT failed; its rows are visible after the next refresh",
                    extra=extra,
                )
            raise


class _Answered(WrappedStream):
    """The answer of a dataset, or of its source if the dataset has no rows."""

    is_at_end = False

    def __init__(
        self, stream: BatchStream, dispatch: Dispatch, query_id: QueryId, again: Statement
    ) -> None:
        """Take the statement that reads the source, and where it runs."""
        super().__init__(stream)
        self._dispatch = dispatch
        self._query_id = query_id
        self._again: Statement | None = again

    async def __anext__(self) -> pa.RecordBatch:
        while True:
            try:
                batch = await anext(self._batches)
            except StopAsyncIteration:
                if self._again is None:
                    raise
                await self._turn(self._again)
                continue
            if batch.num_rows:
                self._again = None
            return self._fitting(batch)

    async def _turn(self, again: Statement) -> None:
        self._again = None
        try:
            stream = await self._dispatch.execute(self._query_id, again)
        except SourceNotReadError:
            return
        await self._stream.aclose()
        stream.traits.read_as(self.traits)
        self._stream = stream
        self._batches = aiter(stream)

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows in the schema of the answer.

        Raises:
            QueryError: the source has other columns now.
        """
        if batch.schema.equals(self.schema):
            return batch
        try:
            columns = [
                column.cast(field.type)
                for column, field in zip(batch.columns, self.schema, strict=True)
            ]
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)
        except (ValueError, pa.ArrowException) as exc:
            raise QueryError(
                "the source of an accelerated dataset has other columns than the dataset; "
                "refresh it"
            ) from exc
