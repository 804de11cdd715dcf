"""Which URLs and network addresses the service may send notices to."""

import ipaddress
import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

from caraway_management.domain import refusals

_LONGEST_URL = 2_048
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", re.IGNORECASE)
# Forms of addresses that resolvers take and that `ipaddress` does not: 2130706433, 0x7f.1, 0177.1.
_NUMBERS = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+))*", re.IGNORECASE)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
_CARRIER = ipaddress.ip_network("100.64.0.0/10")
_OUTSIDE_PORT = 443
_NAMES_INSIDE = ("localhost", "local", "internal", "localdomain", "home.arpa")

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Outside:
    """Where notices may be sent to."""

    allows_inside: bool = False
    """True if also private addresses, HTTP and any port are allowed: for installations whose users
    are trusted with the network of the service."""


def check_url(url: str, outside: Outside, field: str) -> SplitResult:
    """Return the parts of a URL that notices may be sent to.

    Names are not resolved here: their addresses are checked when a connection is made.

    Raises:
        RefusedError: it is none.
    """
    problem = _problem(url, outside)
    if problem:
        raise refusals.invalid_field(field, problem, "url_not_allowed")
    return urlsplit(url)


def _problem(url: str, outside: Outside) -> str:
    if len(url) > _LONGEST_URL or not url.isascii() or re.search(r"[\x00-\x20\x7f\\]", url):
        return f"must be a URL of at most {_LONGEST_URL} visible ASCII characters"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "must be a URL such as https://example.com/hook"
    if parts.scheme != "https" and not (outside.allows_inside and parts.scheme == "http"):
        return "must begin with https://"
    if "@" in parts.netloc:
        return "must not contain a user or password; use the token"
    if parts.fragment:
        return "must not have a fragment"
    if port == 0 or (port not in (None, _OUTSIDE_PORT) and not outside.allows_inside):
        return f"must use port {_OUTSIDE_PORT}"
    return _host_problem(host, outside)


def _host_problem(host: str, outside: Outside) -> str:
    try:
        address: Address | None = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is None and (not _HOST.fullmatch(host) or _NUMBERS.fullmatch(host)):
        return "must name a host"
    if outside.allows_inside:
        return ""
    if address is not None:
        return "" if is_public(address) else "must not be an address of a private network"
    if "." not in host or any(f".{host}".endswith(f".{name}") for name in _NAMES_INSIDE):
        return "must name a public host"
    return ""


def is_public(address: Address) -> bool:
    """Return whether an address is one of the public internet, in whatever form it is written."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        is_tunnel = address.sixtofour is not None or address.teredo is not None
        if is_tunnel or address not in _UNICAST:
            return False
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
        and address not in _CARRIER
    )
