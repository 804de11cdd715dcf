"""Which hosts a server may send a reader on to."""

import ipaddress
import socket

import httpx

from caraway_core.errors import DatasetError


def check(home: str, url: str, title: str) -> None:
    """Refuse the address of another host that is less secure, or inside of a private network.

    A server of the internet must not make the runtime read what only its network reaches. If the
    manifest names a server inside, its answers may refer to others inside.

    Raises:
        DatasetError: the address is refused.
    """
    from_, to = httpx.URL(home), httpx.URL(url)
    if from_.scheme == "https" and to.scheme == "http":
        raise DatasetError(
            "invalid", f"'{title}' refers to an http address, which is not followed from https"
        )
    if from_.host != to.host and _is_inside(to.host) and not _is_inside(from_.host):
        raise DatasetError(
            "invalid", f"'{title}' refers to an address of a private network, which is not read"
        )


def _is_inside(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False  # The request will fail for the same reason.
    addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    return any(not each.is_global or each.is_multicast for each in addresses)
