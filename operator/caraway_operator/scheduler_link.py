"""What the operator asks of a cluster's schedulers, on the port for metrics, signed."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from caraway_core import signatures
from caraway_core.errors import CarawayError

_TIMEOUT_S = 5.0


class LinkError(CarawayError):
    """The schedulers do not answer, or not as they should."""


@dataclass(frozen=True, slots=True)
class ExecutorView:
    """An executor as a scheduler sees it."""

    id: str
    is_ready: bool
    is_draining: bool = False
    is_drained: bool = False
    """Every scheduler knows that it drains, and nothing runs there."""
    running: int = 0
    holds: tuple[str, ...] = ()
    """Datasets in memory that are nowhere else; they go with it."""
    is_refused: bool = False
    """It speaks another version of the protocol than this scheduler."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory of an executor for statements."""

    used_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Load:
    """How much work one scheduler has, and how full the executors are."""

    queued: int
    running: int
    memory: tuple[Usage, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """Where the schedulers of a cluster are, and what shows that we may ask."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"Target({self.url!r})"


class Link(Protocol):
    """Asks the schedulers of clusters."""

    async def executors(self, target: Target) -> Sequence[ExecutorView]:
        """Return the executors that are registered.

        Raises:
            LinkError: no scheduler answers.
        """
        ...

    async def load(self, target: Target) -> Load:
        """Return how much work there is.

        Raises:
            LinkError: no scheduler answers.
        """
        ...

    async def drain(self, target: Target, executor: str) -> None:
        """Let an executor get no more work, and hand over what it holds.

        Raises:
            LinkError: no scheduler answers.
        """
        ...

    async def undrain(self, target: Target, executor: str) -> None:
        """Let an executor work again.

        Raises:
            LinkError: no scheduler answers.
        """
        ...

    async def is_ready(self, target: Target, min_ready: int) -> bool:
        """Tell whether everything is loaded and so many executors are ready.

        Raises:
            LinkError: no scheduler answers.
        """
        ...


class HttpLink:
    """Over HTTP to the Service of the cluster, which leads to any scheduler that is ready."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def executors(self, target: Target) -> Sequence[ExecutorView]:
        found = await self._json(target, "GET", "/internal/executors")
        return [_view(entry) for entry in _entries(found)]

    async def load(self, target: Target) -> Load:
        found = await self._json(target, "GET", "/internal/load")
        if not isinstance(found, Mapping):
            raise LinkError("the scheduler's answer on its load makes no sense")
        usages = [
            Usage(_number(entry, "memory_used"), _number(entry, "memory_limit"))
            for entry in _entries(found.get("executors"))
        ]
        queued = _number(found, "queued") + _number(found, "jobs_queued")
        running = _number(found, "running") + _number(found, "jobs_running")
        return Load(queued, running, tuple(usages))

    async def drain(self, target: Target, executor: str) -> None:
        await self._send(target, "POST", f"/internal/executors/{quote(executor)}/drain")

    async def undrain(self, target: Target, executor: str) -> None:
        await self._send(target, "DELETE", f"/internal/executors/{quote(executor)}/drain")

    async def is_ready(self, target: Target, min_ready: int) -> bool:
        path = f"/v1/ready?min_ready_executors={min_ready}"
        try:
            response = await self._http.get(target.url + path, timeout=_TIMEOUT_S)
        except httpx.HTTPError as exc:
            raise LinkError(f"no scheduler answers: {type(exc).__name__}") from exc
        return response.status_code == 200

    async def _json(self, target: Target, method: str, path: str) -> Any:
        response = await self._send(target, method, path)
        try:
            return response.json()
        except json.JSONDecodeError as exc:
            raise LinkError(f"the scheduler's answer to {path} is no JSON") from exc

    async def _send(self, target: Target, method: str, path: str) -> httpx.Response:
        headers = {"Authorization": signatures.sign(target.token, method, path)}
        try:
            response = await self._http.request(
                method, target.url + path, headers=headers, timeout=_TIMEOUT_S
            )
        except httpx.HTTPError as exc:
            raise LinkError(f"no scheduler answers: {type(exc).__name__}") from exc
        # An executor that is gone needs no drain, and no end of one.
        if response.status_code >= 400 and not (method != "GET" and response.status_code == 404):
            raise LinkError(f"the scheduler answered {response.status_code} to {method} {path}")
        return response


@asynccontextmanager
async def connected() -> AsyncIterator[HttpLink]:
    """Hold the connections to schedulers."""
    # A connection that is kept would lead to the same scheduler for ever, also while it stops.
    limits = httpx.Limits(max_connections=50, max_keepalive_connections=0)
    async with httpx.AsyncClient(limits=limits, trust_env=False) as http:
        yield HttpLink(http)


# Any: what the scheduler sent.
def _entries(found: Any) -> list[Mapping[str, Any]]:
    if not isinstance(found, list):
        raise LinkError("the scheduler's answer has no list of executors")
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


def _number(entry: Mapping[str, Any], key: str) -> int:
    found = entry.get(key)
    return int(found) if isinstance(found, int | float) else 0
