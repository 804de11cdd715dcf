"""Headers of requests as a manifest writes them."""

import re
from collections.abc import Mapping

from caraway_core.errors import ToolError

_SCHEMES = ("basic", "bearer", "token")
_LEAST_SECRET = 6
"""Characters; shorter values are words that any text may have."""


def parsed_headers(name: str, text: str) -> dict[str, str]:
    """Read headers that are written as `Name: value`, separated by `;` or line ends.

    Raises:
        ToolError: a part is no header; the message shows no value.
    """
    headers = {}
    for part in filter(None, map(str.strip, re.split(r"[;\n]", text))):
        key, colon, value = part.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", key.strip()):
            raise ToolError(f"tool '{name}': headers are written as `Name: value; Other: value`")
        headers[key.strip().lower()] = value.strip()
    return headers


def secrets_in(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values that no error may show: those of all headers but the usual ones."""
    found = []
    for name, value in headers.items():
        if name in ("accept", "content-type", "user-agent"):
            continue
        scheme, _, rest = value.partition(" ")
        secret = rest.strip() if scheme.lower() in _SCHEMES else value
        if len(secret) >= _LEAST_SECRET:
            found.append(secret)
    return tuple(found)
