"""Keys and session ids in the metadata of calls."""

import base64
import binascii
from collections.abc import Mapping, Sequence

from caraway_serving.access import presented_key

Headers = Mapping[str, Sequence[str | bytes]]


def text(headers: Headers, name: str) -> str | None:
    """Return the first value of a header."""
    values = headers.get(name)
    if not values:
        return None
    return values[0] if isinstance(values[0], str) else values[0].decode(errors="replace")


def credential(headers: Headers) -> str | None:
    """Take the key or session id out of a call's metadata; empty is as good as absent.

    `auth-token-bin` is where clients of Arrow's own handshake put what the handshake gave them.
    """
    authorization = text(headers, "authorization")
    return (
        presented_key(text(headers, "x-api-key"), authorization)
        or _basic_password(authorization)
        or text(headers, "auth-token-bin")
    )


def _basic_password(authorization: str | None) -> str | None:
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    encoded = encoded.strip().rstrip("=")
    # The Flight SQL driver of Go, which ADBC is built on, sends no padding.
    padding = "=" * (-len(encoded) % 4)
    try:
        decoded = base64.b64decode(encoded + padding, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return decoded.partition(":")[2]
