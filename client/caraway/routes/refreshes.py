"""Requests refreshes of accelerated datasets and watches them until they finish."""

import itertools
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from caraway.errors import BrokenResponseError
from caraway.requests import parsing, retries
from caraway.requests.parsing import Row
from caraway.requests.transport import ApiRequest, Transport
from caraway_core.concurrency.backoff import Delays
from caraway_core.concurrency.clocks import Sleep
from caraway_core.errors import CarawayError

_FIRST_PAUSE_S = 0.1
_START_TIMEOUT_S = 15.0
"""The limit of the start of a refresh. After that the server has probably lost the request."""
_START_TIMEOUT_AFTER_FAILURE_S = 3.0
"""The same if the previous refresh failed: this one probably failed too, between two polls."""
_JSON = "application/json"


class RefreshError(CarawayError):
    """A refresh failed or never started. Queries still read the previous version."""


@dataclass(frozen=True, slots=True)
class AccelerationStatus:
    """The state of an accelerated dataset at one moment. `document` is the server's response.

    `version` 0 means that no version has been loaded yet. `loaded_rows` and `loaded_bytes` count
    the running refresh: the rows that it has read, and the bytes that it has stored. `error` is the
    reason why the last refresh failed.
    """

    version: int = 0
    rows: int = 0
    bytes: int = 0
    is_refreshing: bool = False
    is_asked_again: bool = False
    loaded_rows: int = 0
    loaded_bytes: int = 0
    error: str = ""
    loaded_rows_per_s: float = 0.0
    document: Row = field(default_factory=dict, repr=False)

    @property
    def is_busy(self) -> bool:
        return self.is_refreshing or self.is_asked_again


@dataclass(slots=True)
class RefreshTracker:
    """Decides when a requested refresh has finished, from successive states of the dataset.

    The server does not identify refreshes, so the tracker compares each state with the one from
    before the request.
    """

    before: AccelerationStatus
    has_run: bool = False
    idle_s: float = 0.0
    """The time for which no refresh has been running or queued."""

    def observe(self, now: AccelerationStatus, passed_s: float) -> bool:
        """Record a state seen `passed_s` after the previous one; return whether it is the last.

        Raises:
            RefreshError: the refresh failed or never started.
        """
        if now.is_busy:
            self.has_run, self.idle_s = True, 0.0
            return False
        if now.error and (self.has_run or now.error != self.before.error):
            raise RefreshError(now.error)
        self.idle_s += passed_s
        if now.version > self.before.version:
            # If it was not seen running, this version may be that of an earlier refresh.
            return self.has_run or self.idle_s > 0
        if self.idle_s > (_START_TIMEOUT_AFTER_FAILURE_S if now.error else _START_TIMEOUT_S):
            raise RefreshError(now.error or "the refresh did not start; request it again")
        return False


@dataclass(frozen=True, slots=True)
class RefreshApi:
    """The routes of accelerated datasets."""

    transport: Transport
    sleep: Sleep

    def request_refresh(self, name: str, overrides: Mapping[str, object]) -> str:
        """Request a refresh and return the server's message."""
        # A retry may refresh the dataset twice, which does no harm.
        answer = self._send("POST", f"{_path(name)}/refresh", overrides)
        return str(parsing.parse_object(answer).get("message", ""))

    def configure(self, name: str, settings: Mapping[str, object]) -> None:
        """Change the refresh settings of a dataset."""
        self._send("PATCH", _path(name), settings)

    def fetch_acceleration(self, name: str) -> Row:
        """Return the acceleration document of a dataset."""
        request = ApiRequest("GET", _path(name), accept=_JSON)
        # A replaced scheduler is back within seconds.
        return parsing.parse_object(
            self.transport.text(request, retries.patient(self.transport.max_retries))
        )

    def watch_refresh(
        self, name: str, before: AccelerationStatus, longest_pause_s: float
    ) -> Generator[AccelerationStatus, None, None]:
        """Yield the status of a dataset until the refresh just requested has finished.

        Raises:
            RefreshError: the refresh failed or never started.
        """
        tracker, passed_s = RefreshTracker(before), 0.0
        delays = Delays(_FIRST_PAUSE_S, longest_pause_s)
        for polls in itertools.count(1):
            now = parse_status(self.fetch_acceleration(name))
            yield now
            if tracker.observe(now, passed_s):
                return
            passed_s = delays.delay_s(polls)
            self.sleep(passed_s)

    def _send(self, method: str, path: str, body: Mapping[str, object]) -> str:
        request = ApiRequest(
            method, path, accept=_JSON, body=json.dumps(body).encode(), content_type=_JSON
        )
        return self.transport.text(request, retries.submissions(self.transport.max_retries))


def parse_status(document: Row) -> AccelerationStatus:
    """Read an acceleration document.

    Raises:
        BrokenResponseError: the document does not have the expected form.
    """
    version, refresh = document.get("version") or {}, document.get("refresh")
    loaded = refresh or {}
    try:
        return AccelerationStatus(
            int(version.get("number", 0)),
            int(version.get("rows", 0)),
            int(version.get("bytes", 0)),
            refresh is not None,
            bool(document.get("is_asked_for_again")),
            int(loaded.get("rows", 0)),
            int(loaded.get("bytes", 0)),
            str(document.get("error") or ""),
            float(loaded.get("rows_per_second", 0.0)),
            document,
        )
    except (AttributeError, TypeError, ValueError) as exc:
        raise BrokenResponseError(
            f"expected the status of a dataset, but the server sent: {document!r:.200}"
        ) from exc


def _path(name: str) -> str:
    return f"/v1/datasets/{quote(name, safe='')}/acceleration"
