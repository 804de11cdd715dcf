"""Requests to an API as values, and what an answer holds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from caraway_core.errors import DatasetError

_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request. Its address and headers may hold secrets, so they are never printed.

    `home` is the address of the manifest: only its host gets the headers and the body. With a
    `body` it is a POST, if it has no other `method`.
    """

    home: str = field(repr=False)
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: str | None = field(default=None, repr=False)
    method: str = ""

    @property
    def verb(self) -> str:
        """The method of HTTP."""
        return self.method or ("GET" if self.body is None else "POST")

    @property
    def title(self) -> str:
        """The address for messages: without a login, a query and a fragment."""
        return title_of(self.url)

    @property
    def is_home(self) -> bool:
        """True if the request goes to the host of the manifest, and is not less secure."""
        return is_same_host(httpx.URL(self.home), httpx.URL(self.url))

    def with_params(self, params: Mapping[str, str]) -> "ApiCall":
        """Return the request with these parameters in its query."""
        return replace(self, url=str(httpx.URL(self.url).copy_merge_params(params)))

    def at(self, address: str, base: str) -> "ApiCall":
        """Return the request to another address, which may be relative to `base`.

        Raises:
            DatasetError: it is not an address of the web.
        """
        try:
            url = httpx.URL(base).join(address)
        except (httpx.InvalidURL, ValueError):
            url = httpx.URL("")
        if url.scheme not in _USUAL_PORTS or not url.host or url.userinfo:
            raise DatasetError(
                "invalid", f"'{self.title}' refers to an address that is not one of the web"
            )
        return replace(self, url=str(url))


@dataclass(frozen=True, slots=True)
class ApiPage:
    """An answer: its JSON value, the address that gave it, and that of its `Link` to the next."""

    value: Any
    url: str
    next_link: str | None = None


def title_of(url: str) -> str:
    """Return an address for messages, which shows no secrets."""
    parsed = httpx.URL(url)
    return str(parsed.copy_with(userinfo=b"", query=None, fragment=None))


def is_same_host(left: httpx.URL, right: httpx.URL) -> bool:
    """Return whether secrets for one address may go to the other one."""
    if left.host != right.host:
        return False
    if left.scheme == right.scheme:
        return _port(left) == _port(right)
    is_upgrade = (left.scheme, right.scheme) == ("http", "https")
    return is_upgrade and (_port(left), _port(right)) == (80, 443)


def _port(url: httpx.URL) -> int | None:
    return url.port or _USUAL_PORTS.get(url.scheme)
