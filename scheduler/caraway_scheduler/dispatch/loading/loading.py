"""Loads versions of accelerated datasets into the memory of executors."""

import asyncio
from collections.abc import Sequence

from caraway_core.changes import Log
from caraway_core.errors import CarawayError, ExecutorLostError, ShuttingDownError
from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.fleet import Fleet
from caraway_core.tables import StoredTable
from caraway_engine.rows import entries
from caraway_engine.sharing import dealing
from caraway_engine.stages import Policy
from caraway_scheduler.dispatch.tasks.placing import none_ready
from caraway_scheduler.dispatch.tasks.running import ATTEMPTS
from caraway_scheduler.membership import Membership


class Loader:
    """Lets executors load their shares before a catalog names the version."""

    def __init__(self, fleet: Fleet, membership: Membership, origin: str, policy: Policy) -> None:
        self._fleet = fleet
        self._membership = membership
        self._origin = origin
        self._policy = policy

    async def load(self, table: TableName, spec: StoredTable, log: Log) -> int:
        """Load a version, retrying when an executor is lost, and return its row count.

        A small version is read by whichever executor a statement runs on. If its rows must be
        counted, one executor loads it now.

        Raises:
            QueryError: the version does not fit or cannot be read, or violates a unique key.
            ExecutorLostError: executors were lost repeatedly.
        """
        chunks = dealing.pieces(spec)
        is_counted = not log and spec.keys is None
        is_small = self._policy.is_small_table(sum(each.size_bytes for each in chunks))
        if is_counted and (is_small or not self._ready()):
            return sum(each.row_count for each in spec.chunks)
        is_whole = is_small or (bool(log) and entries.buckets(spec) is None)
        last: ExecutorLostError | ShuttingDownError | None = None
        for _ in range(ATTEMPTS):
            ready = self._ready()
            if not ready:
                raise last or none_ready()
            try:
                return await self._loaded(table, spec, log, ready[:1] if is_whole else ready)
            except ExecutorLostError as exc:
                self._membership.lost(exc.executor_id, exc.cause)
                last = exc
            except ShuttingDownError as exc:
                last = exc
        assert last is not None
        raise last

    async def load_share(
        self,
        table: TableName,
        spec: StoredTable,
        log: Log,
        owners: Sequence[ExecutorId],
        executor_id: ExecutorId,
    ) -> None:
        """Let one owner load its future share of a version that `owners` will divide.

        Raises:
            QueryError, ExecutorLostError: as in `load`.
        """
        size_bytes = sum(each.size_bytes for each in dealing.pieces(spec))
        if self._policy.is_small_table(size_bytes) or (log and entries.buckets(spec) is None):
            return
        holders_of_pieces = dealing.holders(spec, owners, spec.replicas).items()
        names = [name for name, ids in holders_of_pieces if executor_id in ids]
        if names:
            await self._fleet.load(executor_id, self._origin, table, spec, names, log)

    async def put_back(self, table: TableName, spec: StoredTable, log: Log) -> int:
        """Let one executor after another restore chunks that are damaged in the chunk store.

        Raises:
            CarawayError: no executor could restore a chunk, and at least one failed.
        """
        count, failure = 0, None
        for executor_id in self._ready():
            try:
                count += await self._fleet.put_back(executor_id, self._origin, table, spec, log)
            except CarawayError as exc:
                failure = exc
        if failure is not None and not count:
            raise failure
        return count

    async def _loaded(
        self, table: TableName, spec: StoredTable, log: Log, executors: Sequence[ExecutorId]
    ) -> int:
        """Load each partition on its owner and on the owners of its further copies."""
        holders_of_pieces = dealing.holders(spec, executors, spec.replicas).items()
        shares = [
            (
                executor_id,
                rank,
                [name for name, ids in holders_of_pieces if executor_id in ids[rank : rank + 1]],
            )
            for executor_id in executors
            for rank in range(min(spec.replicas, len(executors)))
        ]
        rows = await asyncio.gather(
            *(
                self._fleet.load(executor_id, self._origin, table, spec, names, log)
                for executor_id, _, names in shares
            )
        )
        return sum(count for count, (_, rank, _) in zip(rows, shares, strict=True) if not rank)

    def _ready(self) -> list[ExecutorId]:
        return [member.executor_id for member in self._membership.ready()]
