"""Point lookups on a cluster: one call, to the executor that has the rows in memory."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from caraway_core.errors import CatalogMovedError, ExecutorLostError, ShuttingDownError
from caraway_core.ids import ExecutorId, QueryId, TableName
from caraway_core.protocols.dispatch import BatchStream, Statement
from caraway_core.tables import StoredTable
from caraway_engine import lookups
from caraway_engine.lookups import Lookup
from caraway_engine.sessions import Session
from caraway_engine.stages import Policy
from caraway_scheduler.dispatch import sharing_out
from caraway_scheduler.dispatch.whole import WholeRunner
from caraway_scheduler.membership import Membership

logger = logging.getLogger(__name__)
_Dealt = tuple[tuple[ExecutorId, ...], Mapping[str, tuple[ExecutorId, ...]]]
"""The executors that were ready, and who of them has what."""


class LookupRunner:
    """Sends lookups past the planning of stages. Whatever it does not do is done as ever."""

    def __init__(self, membership: Membership, whole: WholeRunner, policy: Policy) -> None:
        self._membership = membership
        self._whole = whole
        self._policy = policy
        self._dealt: WeakKeyDictionary[Session, dict[TableName, _Dealt]] = WeakKeyDictionary()

    async def run(
        self, query_id: QueryId, statement: Statement, session: Session
    ) -> BatchStream | None:
        """Run a statement if it is a lookup that one executor can answer; None if not.

        Raises:
            QueryError: the executor failed at it.
        """
        lookup = await _found(session, statement)
        if lookup is None:
            return None
        spec = session.snapshot.tables[lookup.table]
        assert isinstance(spec, StoredTable)
        executor_id = self._executor(session, spec, lookup)
        if executor_id is None:
            return None
        log = statement.logs.get(spec.key, ())
        # Its own log is all that it takes along.
        statement = replace(statement, logs={spec.key: log} if log else {})
        try:
            return await self._whole.at(executor_id, query_id, statement)
        except ExecutorLostError as exc:
            self._membership.lost(exc.executor_id, exc.cause)
            cause = exc.message
        except (CatalogMovedError, ShuttingDownError) as exc:
            cause = exc.message
        logger.info("lookup runs as ever", extra={"query_id": query_id, "cause": cause})
        return None

    def _executor(self, session: Session, spec: StoredTable, lookup: Lookup) -> ExecutorId | None:
        """Name the executor that has all rows that may be wanted, if one has."""
        ready = tuple(member.executor_id for member in self._membership.ready())
        if not ready:
            return None
        if self._policy.is_small_table(sum(each.size_bytes for each in spec.chunks)):
            return self._whole.idlest(ready)
        names = lookups.pieces(session.versions.by_name[lookup.table], lookup)
        if len(names) > len(lookup.keys):
            return None  # Rows may be anywhere, and to have all of them in one place is too much.
        dealt = self._dealt.setdefault(session, {})
        placed = dealt.get(lookup.table)
        if placed is None or placed[0] != ready:
            placed = dealt[lookup.table] = ready, sharing_out.holders(spec, ready)
        holders = placed[1]
        owners = {holders[name][0] for name in names}
        return owners.pop() if len(owners) == 1 else None


async def _found(session: Session, statement: Statement) -> Lookup | None:
    found = session.lookups.find(statement)
    if found == "unknown":
        await asyncio.to_thread(session.lookups.learn, statement)
        found = session.lookups.find(statement)
    return None if found == "unknown" else found
