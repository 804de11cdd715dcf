"""The address of a client behind proxies that are trusted to name it."""

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network

from caraway_core.errors import CarawayError
from caraway_management.domain.addresses import Address

Network = IPv4Network | IPv6Network
_MOST_HOPS = 50


def read_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Return the networks of proxies, which are written as addresses or in CIDR notation.

    Raises:
        CarawayError: a text is neither.
    """
    try:
        return tuple(ipaddress.ip_network(text.strip()) for text in texts)
    except ValueError as exc:
        raise CarawayError(
            f"--trusted-proxies: {exc}; write networks such as 10.0.0.0/8, separated by commas"
        ) from None


def client_address(peer: str, forwarded: Sequence[str], trusted: Sequence[Network]) -> str:
    """Return the address of the client: the right-most one that is of no trusted proxy.

    `peer` is the sender of the connection, and `forwarded` are the X-Forwarded-For headers in their
    order. What is left of the first untrusted address was written by a client, and is not read.
    """
    address = _read(peer)
    if address is None or not _is_trusted(address, trusted):
        return peer
    hops = [hop for header in forwarded for hop in header.split(",")]
    for hop in reversed(hops[-_MOST_HOPS:]):
        named = _read(_without_port(hop.strip()))
        if named is None:
            break
        address = named
        if not _is_trusted(address, trusted):
            break
    return str(address)


def _is_trusted(address: Address, trusted: Sequence[Network]) -> bool:
    return any(address in network for network in trusted)


def _read(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _without_port(text: str) -> str:
    """Return an address without the port that some proxies add: `1.2.3.4:80`, `[::1]:80`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, colon, _ = text.partition(":")
    return host if colon and text.count(":") == 1 else text
