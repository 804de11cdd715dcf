"""Parses the URL of the state store; the password never appears in messages."""

import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote

from caraway_core.errors import CarawayError
from caraway_core.security import secret_urls

_PORT = 6379
_SCHEMES = ("redis", "rediss", "unix")
_PARAMETERS = ("ca", "db", "durability", "prefix")
_DURABILITIES = ("always", "any")


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server, its database, and the prefix of all keys of this store.

    `durability` is `always`, or `any` to accept a server that may lose writes.
    """

    name: str
    prefix: str
    durability: str
    connection: dict[str, Any] = field(repr=False)


def parse(url: str) -> ServerAddress:
    """Parse `redis://[user][:password@]host[:port][/db]`, `rediss://...` or `unix:///path`.

    Raises:
        CarawayError: the URL is invalid; the message does not contain the password.
    """
    try:
        return _parse(secret_urls.split(url))
    except ValueError as exc:
        raise CarawayError(
            f"the URL of the state store is invalid: {exc}; write "
            "redis://[user][:password@]host[:port][/db][?prefix=name], or rediss:// for TLS"
        ) from None


def _parse(parts: SplitResult) -> ServerAddress:
    if parts.scheme not in _SCHEMES:
        raise ValueError(f"scheme '{parts.scheme}' is not one of {', '.join(_SCHEMES)}")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(query.keys() - set(_PARAMETERS)):
        raise ValueError(f"unknown parameter '{unknown[0]}'; known: {', '.join(_PARAMETERS)}")
    durability = query.get("durability", "always")
    if durability not in _DURABILITIES:
        raise ValueError(f"durability must be one of {', '.join(_DURABILITIES)}")
    connection: dict[str, Any] = {"db": _db(parts, query)}
    if parts.username:
        connection["username"] = unquote(parts.username)
    if parts.password:
        connection["password"] = unquote(parts.password)
    if parts.scheme == "unix":
        connection["path"] = parts.path
        name = f"unix://{parts.path}"
    else:
        connection |= {"host": parts.hostname or "localhost", "port": parts.port or _PORT}
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else connection["host"]
        name = f"{parts.scheme}://{host}:{connection['port']}/{connection['db']}"
    if parts.scheme == "rediss":
        # Without `ca`, the system's certificate authorities are trusted.
        connection |= {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True}
        if "ca" in query:
            connection["ssl_ca_certs"] = query["ca"]
    prefix = query.get("prefix") or "caraway"
    return ServerAddress(name, f"{prefix}:", durability, connection)


def _db(parts: SplitResult, query: dict[str, str]) -> int:
    text = query.get("db", "" if parts.scheme == "unix" else parts.path.strip("/")) or "0"
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"database '{text}' is not a number")
    return int(text)
