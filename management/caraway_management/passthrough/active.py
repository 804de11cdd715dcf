"""Bounds the queries of an organization that are submitted and not done yet."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from caraway_management.domain import plans
from caraway_management.domain.plans import UNLIMITED, Limits
from caraway_management.domain.refusals import RefusedError

_RETRY_AFTER_S = "5"
_MOST_ORGANIZATIONS = 10_000
Count = Callable[[int], Awaitable[int]]
"""Counts the active queries of a project at its runtime."""


def bound(limits: Limits) -> int:
    """Return how many active queries an organization may have."""
    planned = limits.sql_concurrent_queries
    if planned == UNLIMITED:
        return plans.MOST_ACTIVE_QUERIES
    return min(planned, plans.MOST_ACTIVE_QUERIES)


@dataclass(slots=True)
class ActiveQueries:
    """Counts submissions. Runtimes are only asked what is still active when the bound is near,
    so that most submissions cost nothing.
    """

    _submitted: dict[int, dict[int, int]] = field(default_factory=dict)

    async def admit(self, org_id: int, project_id: int, most: int, count: Count) -> None:
        """Count one more query of a project.

        Raises:
            RefusedError: the organization has too many active queries.
        """
        of_org = self._submitted.setdefault(org_id, defaultdict(int))
        if sum(of_org.values()) >= most:
            for each in list(of_org):
                of_org[each] = await count(each)
                if not of_org[each]:
                    del of_org[each]
        if sum(of_org.values()) >= most:
            raise RefusedError(
                429,
                f"the organization has {most} active queries; wait until one of them is done",
                "too_many_queries",
                headers={"retry-after": _RETRY_AFTER_S},
            )
        of_org[project_id] += 1
        while len(self._submitted) > _MOST_ORGANIZATIONS:
            del self._submitted[next(iter(self._submitted))]

    def withdraw(self, org_id: int, project_id: int) -> None:
        """Take back one query that the runtime did not accept."""
        of_org = self._submitted.get(org_id, {})
        if of_org.get(project_id):
            of_org[project_id] -= 1
