"""A client for the Kubernetes API, with timeouts, bounded retries and typed errors."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import httpx

from caraway_core.concurrency.backoff import Backoff, Delays
from caraway_kube.api import errors
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.kinds import KINDS, POD, SECRET, Object, ResourceKind

_ATTEMPTS = 3
_DELAYS = Delays(0.2, 5.0, jitter=1.0)
_LONGEST_ASKED_S = 5.0
_PAGE = 500
_AGAIN = frozenset({429, 500, 502, 503, 504})
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
WATCH_S = 300
# A watch may be quiet until the API server ends it: bookmarks are not guaranteed.
_WATCH_READ_S = WATCH_S + 30
# Without them, a connection that broke silently would hide changes until the read timeout.
_KEEPALIVE: Sequence[tuple[int, int, int]] = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
)


@dataclass(frozen=True, slots=True)
class ObjectList:
    """Objects of a kind, and the version from which a watch continues."""

    items: list[Object]
    version: str


class KubeClient:
    """Sends requests to the API server of one Kubernetes cluster."""

    def __init__(self, access: ApiAccess, http: httpx.AsyncClient, manager: str) -> None:
        self._access = access
        self._http = http
        self.manager = manager
        """The field manager of its writes: which component owns the fields."""
        self.requests = 0
        """The number of requests, including those in `writes`."""
        self.writes = 0

    async def get(self, kind: ResourceKind, namespace: str | None, name: str) -> Object:
        """Return one object.

        Raises:
            ObjectNotFoundError: it does not exist.
        """
        return await self._send("GET", kind.path(namespace, name), kind)

    async def list(
        self, kind: ResourceKind, namespace: str | None, selector: str = ""
    ) -> ObjectList:
        """Return all objects of a kind in a namespace, or in all namespaces."""
        items: list[Object] = []
        query = {"limit": str(_PAGE)} | ({"labelSelector": selector} if selector else {})
        while True:
            page = await self._send("GET", kind.path(namespace), kind, query=query)
            # The items of a list lack these two fields.
            stamp = {"apiVersion": kind.api_version, "kind": kind.name}
            items += [stamp | item for item in page.get("items") or ()]
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return ObjectList(items, metadata.get("resourceVersion", ""))
            query = query | {"continue": metadata["continue"]}

    async def watch(
        self, kind: ResourceKind, namespace: str | None, selector: str, version: str
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yield (type, object) for each change, until the API server ends the watch.

        Raises:
            ExpiredError: the version is too old; list again.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_S),
            "resourceVersion": version,
        } | ({"labelSelector": selector} if selector else {})
        timeout = httpx.Timeout(10, read=_WATCH_READ_S, pool=None)
        what = f"watch {kind.plural}"
        try:
            async with self._http.stream(
                "GET", kind.path(namespace), params=query, timeout=timeout
            ) as response:
                if response.status_code >= 400:
                    await response.aread()
                    raise errors.of_status(response.status_code, what, _said(response))
                async for line in _lines(response):
                    yield _event(json.loads(line), what)
        except (httpx.HTTPError, ValueError) as exc:
            raise errors.ApiUnavailableError(f"{what}: {type(exc).__name__}") from exc

    async def replace(self, desired: Object) -> Object:
        """Replace the object that has the given resourceVersion.

        Raises:
            ConflictError: the live object has another version.
            ObjectInvalidError: the object is invalid.
            ObjectNotFoundError: it does not exist.
        """
        kind, metadata = KINDS[desired["kind"]], desired["metadata"]
        query = {"fieldManager": self.manager}
        path = kind.path(metadata["namespace"], metadata["name"])
        return await self._send("PUT", path, kind, desired, query=query)

    async def create(self, desired: Object, *, is_dry_run: bool = False) -> Object:
        """Create an object. A dry run only validates it.

        Raises:
            ConflictError: it exists already.
        """
        kind = KINDS[desired["kind"]]
        query = {"fieldManager": self.manager} | ({"dryRun": "All"} if is_dry_run else {})
        path = kind.path(desired["metadata"]["namespace"])
        return await self._send("POST", path, kind, desired, query=query)

    async def merge(
        self, kind: ResourceKind, namespace: str, name: str, patch: Object, subresource: str = ""
    ) -> Object:
        """Apply a merge patch to an object; to that version only if it has a resourceVersion.

        Raises:
            ConflictError: the object has another version.
        """
        query = {"fieldManager": self.manager}
        path = kind.path(namespace, name, subresource)
        return await self._send("PATCH", path, kind, patch, query=query, type_=_MERGE)

    async def apply(self, desired: Object) -> Object:
        """Create the object, or set the fields of it that this manager applies (server-side apply).

        The manager becomes the owner of these fields, also of those that another one applied.
        Fields that it applied before and that are missing now are removed.
        """
        kind, metadata = KINDS[desired["kind"]], desired["metadata"]
        query = {"fieldManager": self.manager, "force": "true"}
        path = kind.path(metadata.get("namespace"), metadata["name"])
        return await self._send("PATCH", path, kind, desired, query=query, type_=_APPLY)

    async def delete(
        self,
        kind: ResourceKind,
        namespace: str | None,
        name: str,
        uid: str,
        propagation: Literal["Background", "Orphan"] = "Background",
    ) -> None:
        """Delete the object with this uid. Does nothing if it is gone or was replaced."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {"uid": uid},
        }
        try:
            await self._send("DELETE", kind.path(namespace, name), kind, body)
        except (errors.ObjectNotFoundError, errors.ConflictError):
            return

    async def read_log(self, namespace: str, pod: str, tail: int) -> str:
        """Return the last lines of the log of a pod's main container.

        Raises:
            ObjectNotFoundError: the pod does not exist.
        """
        path = f"{POD.path(namespace, pod, 'log')}"
        self.requests += 1
        try:
            response = await self._http.get(quote(path), params={"tailLines": str(tail)})
        except httpx.HTTPError as exc:
            raise errors.ApiUnavailableError(f"GET {path}: {type(exc).__name__}") from exc
        if response.status_code >= 400:
            raise errors.of_status(response.status_code, f"GET {path}", _said(response))
        return response.text

    async def serves(self, kind: ResourceKind) -> bool:
        """Return whether the API server serves the kind."""
        try:
            resource = await self._send("GET", kind.root, kind)
        except errors.ObjectNotFoundError:
            return False
        return any(entry["name"] == kind.plural for entry in resource.get("resources", ()))

    async def _send(
        self,
        method: str,
        path: str,
        kind: ResourceKind,
        body: Object | None = None,
        *,
        query: Mapping[str, str] | None = None,
        type_: str = "application/json",
    ) -> Object:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": type_} if content is not None else {}
        what = f"{method} {path}"
        self.writes += method != "GET"
        again = Backoff(_DELAYS)
        for attempt in range(1, _ATTEMPTS + 1):
            self.requests += 1
            pause_s = 0.0
            try:
                response = await self._http.request(
                    method, quote(path), params=query, content=content, headers=headers
                )
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as exc:
                failure = errors.ApiUnavailableError(f"{what}: {type(exc).__name__}")
            except httpx.HTTPError as exc:
                failure = errors.ApiUnavailableError(f"{what}: {type(exc).__name__}")
                # The server may have handled it, so only idempotent requests are retried.
                if method == "POST":
                    raise failure from exc
            else:
                if response.status_code < 400:
                    resource: Object = response.json()
                    return resource
                # A message about a Secret could quote its content.
                said = "refused" if kind is SECRET else _said(response)
                if response.status_code not in _AGAIN or method == "POST":
                    raise errors.of_status(response.status_code, what, said)
                failure = errors.ApiUnavailableError(f"{what}: {response.status_code} {said}")
                pause_s = _retry_after(response)
            if attempt < _ATTEMPTS:
                await asyncio.sleep(pause_s + again.failed())
        raise failure


class _Token(httpx.Auth):
    """Sends the token, and reads it again after status 401."""

    def __init__(self, access: ApiAccess) -> None:
        self._access = access
        self._token = access.read_token()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        self._sign(request)
        response = yield request
        if response.status_code == 401:
            self._token = self._access.read_token()
            self._sign(request)
            yield request

    def _sign(self, request: httpx.Request) -> None:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"


@asynccontextmanager
async def open_client(access: ApiAccess, manager: str) -> AsyncIterator[KubeClient]:
    """Open a client for the API server, whose writes have this field manager."""
    transport = httpx.AsyncHTTPTransport(
        verify=access.verification(),
        # There is a watch, with its own connection, for each kind in each namespace.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        trust_env=False,
        socket_options=_KEEPALIVE,
    )
    async with httpx.AsyncClient(
        base_url=access.server,
        transport=transport,
        auth=_Token(access),
        timeout=httpx.Timeout(30, connect=10),
        headers={"User-Agent": manager, "Accept": "application/json"},
        trust_env=False,
    ) as http:
        yield KubeClient(access, http, manager)


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    # aiter_lines() also splits at characters that JSON strings may contain.
    rest = b""
    async for piece in response.aiter_bytes():
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if line.strip():
                yield line


# Any: JSON from the API server.
def _event(found: Any, what: str) -> tuple[str, Object]:
    if found["type"] == "ERROR":
        status = found["object"]
        raise errors.of_status(status.get("code", 500), what, status.get("message", ""))
    return found["type"], found["object"]


def _said(response: httpx.Response) -> str:
    try:
        return str(response.json()["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return response.reason_phrase


def _retry_after(response: httpx.Response) -> float:
    named = response.headers.get("Retry-After", "")
    return min(float(named), _LONGEST_ASKED_S) if named.isdigit() else 0.0
