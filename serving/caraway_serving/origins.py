"""Decides which host names and which web pages may reach the MCP endpoint.

A web page can make a browser send requests to a name that it points at this machine. The name that
was asked for, and the page that asked, tell such requests from those of clients.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
ANY = "*"


def is_host_allowed(host: str | None, allowed: Sequence[str]) -> bool:
    """Return whether a `Host` header names an allowed host; entries may have a port."""
    if ANY in allowed:
        return True
    name, port = _split(host or "")
    if not name:
        return False
    for entry in allowed or LOCAL_HOSTS:
        known, known_port = _split(entry)
        if known == name and known_port in ("", ANY, port):
            return True
    return False


def is_origin_allowed(origin: str | None, allowed: Sequence[str]) -> bool:
    """Return whether a web page of this origin may ask; without the header it is none.

    `*` means pages of this machine here: any page could otherwise use the keys that browsers keep.
    """
    if origin is None:
        return True
    if origin in allowed:
        return True
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        return False
    return ANY in allowed and host in LOCAL_HOSTS


def _split(host: str) -> tuple[str, str]:
    """Return the name and the port of `name`, `name:port`, `[v6]:port` or a bare v6 address."""
    text = host.strip().lower()
    if text.startswith("["):
        name, _, rest = text[1:].partition("]")
        return name, rest.removeprefix(":")
    if text.count(":") > 1:
        return text, ""
    name, _, port = text.partition(":")
    return name.removesuffix("."), port
