"""Makes versions of accelerated datasets: runs SQL over the source and stores the rows."""

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from caraway_acceleration.versions.version import VersionPart
from caraway_core import ids
from caraway_core.changes import Log, Logs
from caraway_core.errors import (
    AnswerCutError,
    CatalogMovedError,
    DatasetDamagedError,
    ExecutorLostError,
    OverloadedError,
    ShuttingDownError,
)
from caraway_core.ids import TableName, new_query_id
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.dispatch import Dispatch
from caraway_core.protocols.storing import (
    GROWN_CHUNK_BYTES,
    StoredChunk,
    StoreOrder,
    in_order,
    rows_read,
)
from caraway_core.statements import Statement
from caraway_core.tables import ResultPlace, StoredTable
from caraway_scheduler.queries import storing

logger = logging.getLogger(__name__)
_TRIES = 3
_WHOLE = PartitionBy()
NO_LOGS: Logs = {}


@dataclass(frozen=True, slots=True)
class StoredSize:
    """The rows that were read so far, and the bytes that are stored."""

    rows: int = 0
    size_bytes: int = 0


class DamagedDatasets(Protocol):
    """Takes note of datasets whose stored rows cannot be read; the service repairs them."""

    def damaged(self, name: TableName) -> None:
        """Note that a dataset is damaged."""
        ...


class VersionMaker:
    """Runs load statements in the background, and has executors store their rows."""

    def __init__(
        self,
        dispatch: Dispatch,
        place: ResultPlace,
        damaged: DamagedDatasets | None = None,
    ) -> None:
        """Create a maker, which says to `damaged` which datasets cannot be read."""
        self._dispatch = dispatch
        self._place = place
        self._damaged = damaged

    @property
    def place(self) -> ResultPlace:
        """The place where chunks are stored."""
        return self._place

    @property
    def cores(self) -> int:
        """The number of cores of all executors together."""
        return sum(each.cores for each in self._dispatch.executors() if each.is_registered)

    async def load(self, name: TableName, table: StoredTable, log: Log = ()) -> int | None:
        """Load a version on the executors that will serve it, so that readers need not wait.

        Returns the row count, or None if an executor was lost while loading. Queries then load its
        share on first read.

        Raises:
            QueryError: the version does not fit into memory, or has a duplicate key.
        """
        try:
            return await self._dispatch.load(name, table, log)
        except (ExecutorLostError, OverloadedError, ShuttingDownError) as exc:
            logger.info(
                "version is loaded on first read", extra={"dataset": name, "cause": exc.message}
            )
            return None
        except DatasetDamagedError as exc:
            self._note(exc)
            raise

    async def put_back(self, name: TableName, table: StoredTable, log: Log) -> int:
        """Restore damaged chunks of a version from executors' memory, and return their number.

        Raises:
            CarawayError: the chunk store cannot be written.
        """
        return await self._dispatch.put_back(name, table, log)

    def follow(self, table: StoredTable, log: Log) -> None:
        """Let statements read a version with this log from now on."""
        self._dispatch.follow(table, log)

    async def plan(self, sql: str) -> None:
        """Check that a statement can be planned.

        Raises:
            InvalidQueryError: it cannot.
        """
        stream = await self._dispatch.execute(
            new_query_id(), Statement(f"SELECT * FROM ({sql}) LIMIT 0", {})
        )
        await stream.aclose()

    async def number(self, sql: str) -> int | None:
        """Return the single number that a query yields, or None if it is NULL."""
        stream = await self._dispatch.execute(new_query_id(), Statement(sql, {}))
        try:
            batches = [batch async for batch in stream]
        finally:
            await stream.aclose()
        values = [value.as_py() for batch in batches for value in batch.column(0)]
        return int(values[0]) if values and values[0] is not None else None

    async def make(
        self,
        name: TableName,
        sql: str,
        on_progress: Callable[[StoredSize], None],
        partition_by: PartitionBy = _WHOLE,
        logs: Logs = NO_LOGS,
        *,
        is_kept: bool = False,
    ) -> VersionPart:
        """Store the rows of a statement, divided into partitions.

        With `is_kept`, executors also keep the rows that they produce in memory, for the load that
        follows.

        Raises:
            QueryError: the statement failed. Its stored chunks have a key that no version names.
        """
        for attempt in range(1, _TRIES + 1):
            key = key_of(name)
            order = StoreOrder(
                self._place,
                key,
                cut=partition_by,
                grown_bytes=GROWN_CHUNK_BYTES,
                is_kept=is_kept,
            )
            statement = Statement(sql, {}, store=order, in_background=True, logs=logs)

            def on_word(words: list[StoredChunk]) -> None:
                size_bytes = sum(chunk.size_bytes for chunk in in_order(words))
                on_progress(StoredSize(rows_read(words), size_bytes))

            try:
                answer = await storing.store(self._dispatch, new_query_id(), statement, on_word)
            except DatasetDamagedError as exc:
                self._note(exc)
                raise
            except (AnswerCutError, CatalogMovedError, OverloadedError, ShuttingDownError):
                if attempt == _TRIES:
                    raise
            else:
                return VersionPart(key, answer.schema, answer.chunks)
        raise AssertionError("unreachable")

    def _note(self, error: DatasetDamagedError) -> None:
        if self._damaged is not None:
            self._damaged.damaged(error.table)


def key_of(name: TableName) -> str:
    """Return a new key for chunks, with the dataset and the current time."""
    return f"{prefix_of(name)}{int(time.time()):x}-{uuid.uuid4().hex[:12]}"


def made_at(key: str, name: TableName) -> datetime | None:
    """Return the time of a key, or None if it does not belong to this dataset."""
    prefix = prefix_of(name)
    stamp = key.removeprefix(prefix).partition("-")[0]
    if not key.startswith(prefix) or not stamp:
        return None
    try:
        return datetime.fromtimestamp(int(stamp, 16), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def prefix_of(name: TableName) -> str:
    """Return the prefix of all keys of a dataset, which no other dataset has."""
    return ids.key_prefix(name)
