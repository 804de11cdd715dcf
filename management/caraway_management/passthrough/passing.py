"""The state of an instance for passing queries to runtimes."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from caraway_core.errors import UnavailableError
from caraway_management.domain.refusals import RefusedError
from caraway_management.passthrough.active import ActiveQueries
from caraway_management.passthrough.runtimes import Runtime, Runtimes
from caraway_management.passthrough.targets import RuntimeTargets

_MOST_REQUESTS = 100
"""Requests of an organization that are passed on at once. All share the connections."""
_COUNT_SILENCE_S = 5.0
_ACTIVE = ("pending", "running")


class Passthrough:
    """The connections to runtimes, and the running requests of each organization."""

    def __init__(self, runtimes: Runtimes | None = None) -> None:
        self.runtimes = runtimes or Runtimes()
        self.active = ActiveQueries()
        self.targets = RuntimeTargets()
        self._requests: dict[int, int] = defaultdict(int)

    @contextmanager
    def room(self, org_id: int) -> Iterator[None]:
        """Hold a place for a request of an organization.

        Raises:
            RefusedError: it has too many requests under way.
        """
        if self._requests[org_id] >= _MOST_REQUESTS:
            raise RefusedError(
                429,
                f"the organization has {_MOST_REQUESTS} requests to runtimes under way; try again",
                "too_many_requests",
                headers={"retry-after": "1"},
            )
        self._requests[org_id] += 1
        try:
            yield
        finally:
            self._requests[org_id] -= 1
            if not self._requests[org_id]:
                del self._requests[org_id]

    async def aclose(self) -> None:
        """Close the connections."""
        await self.runtimes.aclose()

    async def count_active(self, runtime: Runtime) -> int:
        """Return how many queries of this service a runtime has not done yet; 0 if it is away."""
        counted = 0
        for status in _ACTIVE:
            path = f"/v1/queries?status={status}&limit=1000"
            try:
                found = await self.runtimes.read_json(runtime, path, _COUNT_SILENCE_S)
            except UnavailableError:
                return 0
            total = found.get("total_count") if isinstance(found, dict) else None
            counted += total if isinstance(total, int) else 0
        return counted
