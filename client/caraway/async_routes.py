"""The routes of a runtime other than statements and asynchronous queries, for asyncio."""

from collections.abc import Iterable, Sequence

from caraway.client import Client
from caraway.requests.parsing import Row
from caraway.routes.ingests import Event
from caraway.statements.async_handles import ThreadedCalls


class AsyncRoutes:
    """The methods of `RuntimeRoutes` that programs use, with the same names."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._calls = ThreadedCalls()

    async def datasets(self, *, status: bool = False) -> list[Row]:
        """List the datasets; `status` adds the status and error message of each."""
        return await self._calls.run_call(lambda: self._client.datasets(status=status))

    async def catalogs(self) -> list[Row]:
        """List the catalogs."""
        return await self._calls.run_call(self._client.catalogs)

    async def models(self) -> Sequence[str]:
        """Return the names of the models of the runtime."""
        return await self._calls.run_call(self._client.models)

    async def status(self) -> list[Row]:
        """List the runtime's servers with their name, endpoint and status."""
        return await self._calls.run_call(self._client.status)

    async def readiness(self, *, verbose: bool = False) -> tuple[bool, str]:
        """Return whether the runtime is ready, and the text of its response."""
        return await self._calls.run_call(lambda: self._client.readiness(verbose=verbose))

    async def refresh_acceleration(
        self,
        dataset: str,
        *,
        refresh_mode: str | None = None,
        refresh_sql: str | None = None,
        refresh_jitter_max: str | float | None = None,
    ) -> str:
        """Request a refresh of an accelerated dataset and return the server's message."""
        return await self._calls.run_call(
            lambda: self._client.refresh_acceleration(
                dataset,
                refresh_mode=refresh_mode,
                refresh_sql=refresh_sql,
                refresh_jitter_max=refresh_jitter_max,
            )
        )

    async def acceleration(self, name: str) -> Row:
        """Return the current version of an accelerated dataset and the state of its refresh."""
        return await self._calls.run_call(lambda: self._client.acceleration(name))

    async def set_refresh_sql(self, name: str, sql: str | None) -> None:
        """Set the refresh SQL from the next refresh until the server restarts."""
        await self._calls.run_call(lambda: self._client.set_refresh_sql(name, sql))

    async def snapshots(self, dataset: str, *, limit: int = 10) -> list[Row]:
        """List the last snapshots of an accelerated dataset, the oldest first."""
        return await self._calls.run_call(lambda: self._client.snapshots(dataset, limit=limit))

    async def snapshot(self, dataset: str, snapshot_id: int) -> Row:
        """Return one snapshot of an accelerated dataset."""
        return await self._calls.run_call(lambda: self._client.snapshot(dataset, snapshot_id))

    async def use_snapshot(self, dataset: str, snapshot_id: int) -> str:
        """Replace the rows of a dataset by those of a snapshot; return the server's message.

        Requires a key with write access.
        """
        return await self._calls.run_call(lambda: self._client.use_snapshot(dataset, snapshot_id))

    async def generate_package(self, source: str, *, git_token: str | None = None) -> bytes:
        """Have the runtime make a package, and return it as a zip file."""
        return await self._calls.run_call(
            lambda: self._client.generate_package(source, git_token=git_token)
        )

    async def ingest(self, name: str, events: Iterable[Event]) -> int:
        """Apply change events to a dataset in order and return how many were applied.

        `events` is read in a thread.
        """
        return await self._calls.run_call(lambda: self._client.ingest(name, events))

    async def active_queries(self) -> list[Row]:
        """List the statements running now. Requires a key with write access."""
        return await self._calls.run_call(self._client.active_queries)

    async def cancel_active_query(self, query_id: str) -> None:
        """Cancel a running statement. Requires a key with write access."""
        await self._calls.run_call(lambda: self._client.cancel_active_query(query_id))

    async def is_service_healthy(self) -> bool:
        """Return True if the process responds."""
        return await self._calls.run_call(self._client.is_service_healthy)

    async def is_service_ready(self) -> bool:
        """Return True if every component is ready; False if the runtime cannot be reached."""
        return await self._calls.run_call(self._client.is_service_ready)
