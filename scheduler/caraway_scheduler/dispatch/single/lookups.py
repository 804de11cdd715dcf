"""Runs point lookups with one call to the executor that has the rows in memory."""

import logging

from caraway_core.errors import CatalogMovedError, ExecutorLostError, ShuttingDownError
from caraway_core.ids import ExecutorId, QueryId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.statements import Statement
from caraway_scheduler.dispatch.single.whole import WholeRunner
from caraway_scheduler.membership import Membership

logger = logging.getLogger(__name__)


class LookupRunner:
    """Sends lookups to executors; a failed lookup is planned like any other statement."""

    def __init__(self, membership: Membership, whole: WholeRunner) -> None:
        self._membership = membership
        self._whole = whole

    async def run_lookup(
        self, query_id: QueryId, statement: Statement, owner: ExecutorId | None
    ) -> BatchStream | None:
        """Run a lookup on the owner of its rows, or on any executor; None if that is lost.

        Raises:
            QueryError: the lookup failed on the executor.
        """
        executor_id = owner or self._idlest()
        if executor_id is None:
            return None
        try:
            return await self._whole.at(executor_id, query_id, statement)
        except ExecutorLostError as exc:
            self._membership.lost(exc.executor_id, exc.cause)
            cause = exc.message
        except (CatalogMovedError, ShuttingDownError) as exc:
            cause = exc.message
        logger.info(
            "lookup is planned as a statement", extra={"query_id": query_id, "cause": cause}
        )
        return None

    def _idlest(self) -> ExecutorId | None:
        ready = [member.executor_id for member in self._membership.ready()]
        return self._whole.idlest(ready) if ready else None
