"""The routes of a runtime other than statements and asynchronous queries, as methods."""

import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from urllib.parse import quote

from caraway.errors import ApiError, BrokenResponseError, UnreachableError
from caraway.requests import parsing, retries
from caraway.requests.parsing import Row
from caraway.requests.transport import ApiRequest, Transport
from caraway.routes import ingests, refreshes
from caraway.routes.ingests import Event, IngestApi
from caraway.routes.refreshes import AccelerationStatus, RefreshApi
from caraway.routes.snapshots import SnapshotApi
from caraway.rows.formats import Format

_LONGEST_PACKAGE_S = 90.0
"""The server gives up earlier, and says so."""


class RuntimeRoutes(ABC):
    """Lists, refreshes, change events, and the state of the runtime."""

    @property
    @abstractmethod
    def _transport(self) -> Transport: ...

    def datasets(self, *, status: bool = False) -> list[Row]:
        """List the datasets; `status` adds the status and error message of each."""
        return self.rows("datasets", {"status": "true"} if status else {})

    def refresh_acceleration(
        self,
        dataset: str,
        *,
        refresh_mode: str | None = None,
        refresh_sql: str | None = None,
        refresh_jitter_max: str | float | None = None,
    ) -> str:
        """Request a refresh of an accelerated dataset and return the server's message.

        If a refresh is running, one more is queued. Arguments other than None override the
        manifest for this refresh only.
        """
        overrides = {
            "refresh_sql": refresh_sql,
            "refresh_mode": refresh_mode,
            "refresh_jitter_max": refresh_jitter_max,
        }
        given = {key: value for key, value in overrides.items() if value is not None}
        return self._refreshes.request_refresh(dataset, given)

    def watch_refresh(
        self, name: str, before: Row, longest_pause_s: float = 2.0
    ) -> Generator[AccelerationStatus, None, None]:
        """Yield the status of a dataset until the refresh just requested has finished.

        `before` is what `acceleration` returned before the request.

        Raises:
            RefreshError: the refresh failed or never started.
        """
        return self._refreshes.watch_refresh(name, refreshes.parse_status(before), longest_pause_s)

    def acceleration(self, name: str) -> Row:
        """Return the current version of an accelerated dataset and the state of its refresh."""
        return self._refreshes.fetch_acceleration(name)

    def set_refresh_sql(self, name: str, sql: str | None) -> None:
        """Set the refresh SQL from the next refresh until the server restarts.

        None leaves it unchanged.
        """
        self._refreshes.configure(name, {"refresh_sql": sql})

    def snapshots(self, dataset: str, *, limit: int = 10) -> list[Row]:
        """List the last snapshots of an accelerated dataset, the oldest first."""
        return self._snapshots.fetch_last(dataset, limit)

    def snapshot(self, dataset: str, snapshot_id: int) -> Row:
        """Return one snapshot of an accelerated dataset."""
        return self._snapshots.fetch(dataset, snapshot_id)

    def use_snapshot(self, dataset: str, snapshot_id: int) -> str:
        """Replace the rows of a dataset by those of a snapshot; return the server's message.

        Requires a key with write access.
        """
        return self._snapshots.choose(dataset, snapshot_id)

    def generate_package(self, source: str, *, git_token: str | None = None) -> bytes:
        """Have the runtime make a package, and return it as a zip file.

        `source` is `git:{org}/{repo}/{sha}/{path of the manifest}`.
        """
        params = {} if git_token is None else {"git_token": git_token}
        request = ApiRequest(
            "POST", "/v1/packages/generate", accept="application/zip",
            body=json.dumps({"from": source, "params": params}).encode(),
            content_type="application/json", timeout_s=_LONGEST_PACKAGE_S,
        )  # fmt: skip
        return self._transport.content(request, self._reads)

    def ingest(self, name: str, events: Iterable[Event]) -> int:
        """Apply change events to a dataset in order and return how many were applied.

        An event is a Debezium envelope, as a mapping or as JSON. Events are sent in batches of a
        thousand; each batch is applied completely or not at all. A batch is retried with the same
        idempotency key, so no event is applied twice.
        """
        return sum(self.ingests(name, events))

    def ingests(
        self, name: str, events: Iterable[Event], batch_events: int = ingests.BATCH_EVENTS
    ) -> Generator[int, None, None]:
        """Like `ingest`, but yield the number of events applied after each batch."""
        return IngestApi(self._transport).send_events(name, events, batch_events)

    def catalogs(self) -> list[Row]:
        """List the catalogs."""
        return self.rows("catalogs")

    def status(self) -> list[Row]:
        """List the runtime's servers with their name, endpoint and status."""
        return self.rows("status")

    def rows(self, name: str, query: Mapping[str, str] | None = None) -> list[Row]:
        """Return the entries of a list route."""
        # Some routes have the wire of OpenAI: an object with the list under `data`.
        return parsing.parse_list(self.listing(name, query), "data")

    def listing(
        self, name: str, query: Mapping[str, str] | None = None, format: Format = Format.JSON
    ) -> str:
        """Return the unparsed body of a list route, as JSON or CSV."""
        parameters = dict(query or {})
        if format is Format.CSV:
            parameters["format"] = "csv"
        request = ApiRequest("GET", f"/v1/{name}", accept=format.media_type, query=parameters)
        return self._transport.text(request, self._reads)

    def readiness(self, *, verbose: bool = False) -> tuple[bool, str]:
        """Return whether the runtime is ready, and the text of its response."""
        query = {"verbose": "true"} if verbose else {}
        request = ApiRequest("GET", "/v1/ready", accept="text/plain", query=query)
        try:
            return True, self._transport.text(request, retries.once())
        except ApiError as error:
            if error.status != 503:
                raise
            return False, error.message

    def is_service_ready(self) -> bool:
        """Return True if every component is ready; False if the runtime cannot be reached."""
        try:
            return self.readiness()[0]
        except (UnreachableError, BrokenResponseError):
            return False

    def is_service_healthy(self) -> bool:
        """Return True if the process responds."""
        request = ApiRequest("GET", "/health", accept="text/plain", timeout_s=5.0, sends_key=False)
        try:
            return self._transport.text(request, retries.once()).strip() == "ok"
        except (UnreachableError, ApiError, BrokenResponseError):
            return False

    def active_queries(self) -> list[Row]:
        """List the statements running now. Requires a key with write access."""
        request = ApiRequest("GET", "/v1/sql/active", accept=Format.JSON.media_type)
        return parsing.parse_list(self._transport.text(request, self._reads), "queries")

    def cancel_active_query(self, query_id: str) -> None:
        """Cancel a running statement. Requires a key with write access.

        Raises:
            ApiError: with status 404 if the statement is not running.
        """
        path = f"/v1/sql/{quote(query_id, safe='')}/cancel"
        request = ApiRequest("POST", path, accept=Format.JSON.media_type)
        self._transport.text(request, retries.once())

    @property
    def _refreshes(self) -> RefreshApi:
        return RefreshApi(self._transport, self._transport.sleep)

    @property
    def _snapshots(self) -> SnapshotApi:
        return SnapshotApi(self._transport)

    @property
    def _reads(self) -> retries.RetryPolicy:
        return retries.reads(self._transport.max_retries)
