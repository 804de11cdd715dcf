"""Makes the next version of an accelerated dataset: by SQL over its source, stored by executors."""

import logging
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

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
from caraway_core.protocols.dispatch import Dispatch, Statement
from caraway_core.protocols.storing import GROWN_CHUNK_BYTES, StoredChunk, StoreOrder, in_order
from caraway_core.tables import ResultPlace, StoredTable
from caraway_scheduler.acceleration.versions.version import VersionPart
from caraway_scheduler.queries import storing

logger = logging.getLogger(__name__)
_TRIES = 3
_WHOLE = PartitionBy()
NO_LOGS: Logs = {}
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class StoredSize:
    """How much is stored so far."""

    rows: int = 0
    size_bytes: int = 0


class Maker:
    """Runs such statements in the background, and has executors store what comes."""

    def __init__(
        self,
        dispatch: Dispatch,
        place: ResultPlace,
        on_damaged: Callable[[TableName], None] = lambda _name: None,
    ) -> None:
        """Take where to store; `on_damaged` is told of datasets whose rows cannot be read."""
        self._dispatch = dispatch
        self._place = place
        self._on_damaged = on_damaged

    @property
    def place(self) -> ResultPlace:
        return self._place

    @property
    def cores(self) -> int:
        """Those of all executors together."""
        return sum(each.cores for each in self._dispatch.executors() if each.is_registered)

    async def load(self, name: TableName, table: StoredTable, log: Log = ()) -> int | None:
        """Bring a version to where it will be read, so that no reader waits for it.

        Returns how many rows it has, if that is known: an executor that is lost meanwhile costs
        those that read from it later a moment.

        Raises:
            QueryError: it does not fit into memory, or has a key twice.
        """
        try:
            return await self._dispatch.load(name, table, log)
        except (ExecutorLostError, OverloadedError, ShuttingDownError) as exc:
            logger.info("a version is loaded later", extra={"dataset": name, "cause": exc.message})
            return None
        except DatasetDamagedError as exc:
            self._on_damaged(exc.table)
            raise

    async def put_back(self, name: TableName, table: StoredTable, log: Log) -> int:
        """Store damaged chunks of a version again, where an executor has their rows; count them.

        Raises:
            CarawayError: the store takes nothing.
        """
        return await self._dispatch.put_back(name, table, log)

    def follow(self, table: StoredTable, log: Log) -> None:
        """Have statements read a version with this log from now on."""
        self._dispatch.follow(table, log)

    async def plan(self, sql: str) -> None:
        """Look whether a statement can be planned.

        Raises:
            InvalidQueryError: it cannot.
        """
        stream = await self._dispatch.execute(
            new_query_id(), Statement(f"SELECT * FROM ({sql}) LIMIT 0", {})
        )
        await stream.aclose()

    async def number(self, sql: str) -> int | None:
        """Return the one number that a query gives, if it is not NULL."""
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
        cut: PartitionBy = _WHOLE,
        logs: Logs = NO_LOGS,
        *,
        is_kept: bool = False,
    ) -> VersionPart:
        """Store what the statement gives, cut into partitions.

        With `is_kept` rows stay in memory where they are made, for whoever loads them next.

        Raises:
            QueryError: it failed. What was stored lies under a key that no version names.
        """
        for attempt in range(1, _TRIES + 1):
            key = key_of(name)
            order = StoreOrder(
                self._place,
                key,
                cut=cut,
                grown_bytes=GROWN_CHUNK_BYTES,
                is_kept=is_kept,
            )
            statement = Statement(sql, {}, store=order, in_background=True, logs=logs)

            def told(words: list[StoredChunk]) -> None:
                chunks = in_order(words)
                on_progress(
                    StoredSize(
                        sum(chunk.row_count for chunk in chunks),
                        sum(chunk.size_bytes for chunk in chunks),
                    )
                )

            try:
                answer = await storing.store(self._dispatch, new_query_id(), statement, told)
            except DatasetDamagedError as exc:
                self._on_damaged(exc.table)
                raise
            except (AnswerCutError, CatalogMovedError, OverloadedError, ShuttingDownError):
                if attempt == _TRIES:
                    raise
            else:
                return VersionPart(key, answer.schema, answer.chunks)
        raise AssertionError("unreachable")


def key_of(name: TableName) -> str:
    """Return a new key for a version; it says of which dataset it is, and since when."""
    return f"{prefix_of(name)}{int(time.time()):x}-{uuid.uuid4().hex[:12]}"


def made_at(key: str, name: TableName) -> datetime | None:
    """Return since when a key is there; None if it is not of this dataset."""
    prefix = prefix_of(name)
    stamp = key.removeprefix(prefix).partition("-")[0]
    if not key.startswith(prefix) or not stamp:
        return None
    try:
        return datetime.fromtimestamp(int(stamp, 16), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def prefix_of(name: TableName) -> str:
    """Return how the keys of a dataset begin, and those of no other one."""
    # Names may hold anything; what cannot stand in a key is told apart by the end.
    digest = uuid.uuid5(uuid.NAMESPACE_OID, name).hex[:8]
    return f"d-{_UNSAFE.sub('_', name)[:60]}-{digest}."
