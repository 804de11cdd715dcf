"""Connects to webhooks: only to addresses that were checked, and only over TLS."""

import asyncio
import functools
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence

import httpx

from caraway_core.errors import CarawayError
from caraway_management.domain import addresses, refusals
from caraway_management.domain.addresses import Outside

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host."""
_TIMEOUT_S = 10.0
_MOST_BYTES = 64 * 1024
_PORTS = {"https": 443, "http": 80}
_TRIES = 3


class UnreachableError(CarawayError):
    """No response came, or there is no address that may be connected to."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, by the resolver of the system."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise UnreachableError(f"the name '{host}' cannot be resolved") from exc
    return [str(address[0]) for *_, address in found]


class Dialer:
    """Sends requests to where notices may go.

    A name is resolved once per request. If any of its addresses is not public, none is used. The
    connection is made to an address that was checked, so a second look-up cannot lead elsewhere.
    Redirects are not followed.
    """

    def __init__(
        self,
        outside: Outside,
        resolve: Resolve = resolve,
        transport: Callable[[], httpx.AsyncBaseTransport] | None = None,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._outside = outside
        self._resolve = resolve
        self._transport = transport or functools.partial(
            httpx.AsyncHTTPTransport, verify=httpx.create_ssl_context(trust_env=False)
        )
        self._timeout_s = timeout_s

    async def send(
        self, method: str, url: str, content: bytes, headers: Mapping[str, str]
    ) -> httpx.Response:
        """Send a request, and return the response with at most 64 KiB of its body.

        Raises:
            UnreachableError: no response came in time, or the address is not allowed.
        """
        try:
            parts = addresses.check_url(url, self._outside, "url")
        except refusals.RefusedError as exc:
            raise UnreachableError(exc.message) from exc
        host = parts.hostname or ""
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self._checked(host, parts.port or _PORTS[parts.scheme])
                return await self._send(method, httpx.URL(url), found, content, headers)
        except TimeoutError:
            raise UnreachableError(f"no response in {self._timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            raise UnreachableError(f"the request failed: {type(exc).__name__}") from exc

    async def _checked(self, host: str, port: int) -> Sequence[str]:
        found = list(dict.fromkeys(await self._resolve(host, port)))
        if not found:
            raise UnreachableError(f"the name '{host}' has no address")
        for text in found:
            try:
                is_public = addresses.is_public(ipaddress.ip_address(text))
            except ValueError:
                is_public = False
            if not is_public and not self._outside.allows_inside:
                raise UnreachableError(f"'{host}' has an address that notices are not sent to")
        return found

    async def _send(
        self,
        method: str,
        url: httpx.URL,
        found: Sequence[str],
        content: bytes,
        headers: Mapping[str, str],
    ) -> httpx.Response:
        """Connect to an address; the certificate and the Host header are those of the name."""
        host = url.netloc.decode("ascii")
        async with httpx.AsyncClient(
            transport=self._transport(), trust_env=False, timeout=self._timeout_s
        ) as client:
            for number, address in enumerate(found[:_TRIES], 1):
                request = client.build_request(
                    method,
                    url.copy_with(host=address),
                    content=content,
                    headers={**headers, "host": host},
                    extensions={"sni_hostname": url.host},
                )
                try:
                    response = await client.send(request, stream=True)
                except httpx.ConnectError:
                    if number == len(found[:_TRIES]):
                        raise
                    continue
                return await _bounded(response)
        raise UnreachableError("no address can be connected to")


async def _bounded(response: httpx.Response) -> httpx.Response:
    """Read the beginning of a response, as it was sent: nothing is decompressed."""
    received = b""
    try:
        async for chunk in response.aiter_raw():
            received += chunk
            if len(received) >= _MOST_BYTES:
                break
    finally:
        await response.aclose()
    return httpx.Response(response.status_code, content=received[:_MOST_BYTES])
