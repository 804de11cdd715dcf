"""Sends signed requests to the schedulers of a cluster, on their metrics port."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from caraway_core.errors import CarawayError
from caraway_core.releases import protocol_versions as versions
from caraway_core.releases.protocol_versions import ProtocolVersions
from caraway_core.security import signatures

_TIMEOUT_S = 5.0
_LONGEST_REASON = 300


class SchedulerClientError(CarawayError):
    """No scheduler answers, or its answer is malformed."""


class OperatorRefusedError(SchedulerClientError):
    """A scheduler and this operator do not work together, as those of different releases."""


@dataclass(frozen=True, slots=True)
class ExecutorView:
    """An executor as a scheduler sees it."""

    id: str
    is_ready: bool
    is_draining: bool = False
    is_drained: bool = False
    """Every scheduler knows that it is draining, and nothing is running on it."""
    running: int = 0
    holds: tuple[str, ...] = ()
    """Datasets in its memory that no other executor has."""
    is_refused: bool = False
    """It speaks another protocol version than this scheduler."""


@dataclass(frozen=True, slots=True)
class PartView:
    """A part of the manifest that is not ready, such as `dataset orders (error)`."""

    title: str
    reason: str = ""
    is_loading: bool = False
    """It was not tried yet."""

    def __str__(self) -> str:
        return f"{self.title}: {self.reason}" if self.reason else self.title


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """The memory of an executor for statements."""

    used_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class SchedulerLoad:
    """The work of one scheduler, and the memory usage of the executors."""

    queued: int
    running: int
    memory: tuple[MemoryUsage, ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulerEndpoint:
    """The address of a cluster's schedulers, and the token that signs requests."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"Target({self.url!r})"


class SchedulerClient(Protocol):
    """Sends requests to the schedulers of clusters."""

    async def executors(self, endpoint: SchedulerEndpoint) -> Sequence[ExecutorView]:
        """Return the registered executors.

        Raises:
            OperatorRefusedError: a scheduler answers 401, here and to the other signed requests.
            SchedulerClientError: no scheduler answers.
        """
        ...

    async def load(self, endpoint: SchedulerEndpoint) -> SchedulerLoad:
        """Return the load of a scheduler.

        Raises:
            SchedulerClientError: no scheduler answers.
        """
        ...

    async def drain(self, endpoint: SchedulerEndpoint, executor: str) -> None:
        """Stop giving work to an executor, and move its data to others.

        Raises:
            SchedulerClientError: no scheduler answers.
        """
        ...

    async def undrain(self, endpoint: SchedulerEndpoint, executor: str) -> None:
        """Cancel the drain of an executor.

        Raises:
            SchedulerClientError: no scheduler answers.
        """
        ...

    async def is_ready(self, endpoint: SchedulerEndpoint, min_ready: int) -> bool:
        """Return whether a scheduler serves and at least `min_ready` executors are ready.

        Raises:
            SchedulerClientError: no scheduler answers.
        """
        ...

    async def unready_parts(self, endpoint: SchedulerEndpoint) -> Sequence[PartView]:
        """Return the parts of the manifest that are not ready.

        Raises:
            SchedulerClientError: no scheduler answers, or only one of an earlier release.
        """
        ...


class HttpSchedulerClient:
    """Sends requests over HTTP to the Service of the cluster, which selects a ready scheduler."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def executors(self, endpoint: SchedulerEndpoint) -> Sequence[ExecutorView]:
        found = await self._json(endpoint, "GET", "/internal/executors")
        return [_view(entry) for entry in _entries(found)]

    async def load(self, endpoint: SchedulerEndpoint) -> SchedulerLoad:
        found = await self._json(endpoint, "GET", "/internal/load")
        if not isinstance(found, Mapping):
            raise SchedulerClientError("the scheduler's load is malformed")
        usages = [
            MemoryUsage(_number(entry, "memory_used"), _number(entry, "memory_limit"))
            for entry in _entries(found.get("executors"))
        ]
        queued = _number(found, "queued") + _number(found, "jobs_queued")
        running = _number(found, "running") + _number(found, "jobs_running")
        return SchedulerLoad(queued, running, tuple(usages))

    async def drain(self, endpoint: SchedulerEndpoint, executor: str) -> None:
        await self._send(endpoint, "POST", f"/internal/executors/{quote(executor)}/drain")

    async def undrain(self, endpoint: SchedulerEndpoint, executor: str) -> None:
        await self._send(endpoint, "DELETE", f"/internal/executors/{quote(executor)}/drain")

    async def is_ready(self, endpoint: SchedulerEndpoint, min_ready: int) -> bool:
        # One dataset in error must not stop a rollout.
        path = f"/v1/ready?probe=pod&min_ready_executors={min_ready}"
        try:
            response = await self._http.get(endpoint.url + path, timeout=_TIMEOUT_S)
        except httpx.HTTPError as exc:
            raise SchedulerClientError(f"no scheduler answers: {type(exc).__name__}") from exc
        return response.status_code == 200

    async def unready_parts(self, endpoint: SchedulerEndpoint) -> Sequence[PartView]:
        found = await self._json(endpoint, "GET", "/internal/parts")
        return [
            PartView(
                f"{entry.get('kind')} {entry.get('name')} ({entry.get('status')})",
                str(entry.get("reason") or ""),
                is_loading=not entry.get("is_settled"),
            )
            for entry in _entries(found)
        ]

    async def _json(self, endpoint: SchedulerEndpoint, method: str, path: str) -> object:
        response = await self._send(endpoint, method, path)
        try:
            return response.json()
        except json.JSONDecodeError as exc:
            raise SchedulerClientError(f"the scheduler's answer to {path} is not JSON") from exc

    async def _send(self, endpoint: SchedulerEndpoint, method: str, path: str) -> httpx.Response:
        headers = {
            "Authorization": signatures.sign(endpoint.token, method, path),
            versions.HEADER: versions.SPOKEN.header,
        }
        try:
            response = await self._http.request(
                method, endpoint.url + path, headers=headers, timeout=_TIMEOUT_S
            )
        except httpx.HTTPError as exc:
            raise SchedulerClientError(f"no scheduler answers: {type(exc).__name__}") from exc
        if response.status_code == 401:
            reason = _reason_of(response)
            raise OperatorRefusedError(f"it does not accept the operator's signature: {reason}")
        theirs = ProtocolVersions.of_header(response.headers.get(versions.HEADER))
        if versions.SPOKEN.common(theirs) is None:
            raise OperatorRefusedError(versions.mismatch("it", theirs, "this operator"))
        # An executor that is gone needs neither a drain nor its cancellation.
        if response.status_code >= 400 and not (method != "GET" and response.status_code == 404):
            raise SchedulerClientError(
                f"the scheduler answered {response.status_code} to {method} {path}"
            )
        return response


@asynccontextmanager
async def open_client() -> AsyncIterator[HttpSchedulerClient]:
    """Open a client for schedulers."""
    # A kept connection would always reach the same scheduler, even while that one stops.
    limits = httpx.Limits(max_connections=50, max_keepalive_connections=0)
    async with httpx.AsyncClient(limits=limits, trust_env=False) as http:
        yield HttpSchedulerClient(http)


def _reason_of(response: httpx.Response) -> str:
    """Return the reason of a 401, as far as the scheduler gives one."""
    try:
        found = response.json()
    except ValueError:
        found = response.text
    reason = found.get("detail") or found.get("error") if isinstance(found, dict) else found
    return " ".join(str(reason or "it gives no reason").split())[:_LONGEST_REASON]


def _entries(found: object) -> list[Mapping[str, object]]:
    if not isinstance(found, list):
        raise SchedulerClientError("the scheduler's answer is not a list")
    return [entry for entry in found if isinstance(entry, Mapping)]


def _view(entry: Mapping[str, Any]) -> ExecutorView:
    return ExecutorView(
        id=str(entry.get("id", "")),
        is_ready=bool(entry.get("ready")),
        is_draining=bool(entry.get("draining")),
        is_drained=bool(entry.get("drained")),
        running=_number(entry, "running"),
        holds=tuple(map(str, entry.get("holds") or ())),
        is_refused=entry.get("state") == "refused",
    )


def _number(entry: Mapping[str, object], key: str) -> int:
    found = entry.get(key)
    return int(found) if isinstance(found, int | float) else 0
