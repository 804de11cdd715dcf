"""Headers of requests as a manifest writes them."""

import re
from collections.abc import Mapping

from caraway_core.errors import ToolError

_SCHEMES = ("basic", "bearer", "token")
_AUTHORIZING = ("authorization", "proxy-authorization")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_LEAST_SECRET = 6
"""Characters; shorter values are words that any text may have."""


def parsed_headers(name: str, text: str) -> dict[str, str]:
    """Read headers that are written as `Name: value`, separated by `;` or line ends.

    Raises:
        ToolError: a part is not a valid header; the message shows no value.
    """
    headers = {}
    for part in filter(None, map(str.strip, re.split(r"[;\n]", text))):
        key, colon, value = part.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", key.strip()):
            raise ToolError(f"tool '{name}': headers are written as `Name: value; Other: value`")
        headers[key.strip().lower()] = _checked(name, key.strip(), value.strip())
    return headers


def authorization(name: str, param: str, token: str) -> str:
    """Return the value of an `Authorization` header; a token with a scheme keeps it.

    Raises:
        ToolError: the token has characters that a header cannot have.
    """
    token = token.strip()
    if not _VALUE.fullmatch(token):
        raise ToolError(f"tool '{name}': '{param}' may only have printable ASCII characters")
    return token if " " in token else f"Bearer {token}"


def secrets_in(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values that no error may show: those of all headers but the usual ones."""
    found = []
    for name, value in headers.items():
        if name in ("accept", "content-type", "user-agent"):
            continue
        scheme, _, rest = value.partition(" ")
        has_scheme = scheme.lower() in _SCHEMES or (name in _AUTHORIZING and rest)
        secret = rest.strip() if has_scheme else value
        if len(secret) >= _LEAST_SECRET:
            found.append(secret)
    return tuple(found)


def _checked(name: str, header: str, value: str) -> str:
    """Return the value of a header.

    Raises:
        ToolError: it has characters that a header cannot have; the message does not show them.
    """
    if not _VALUE.fullmatch(value):
        raise ToolError(
            f"tool '{name}': the value of header '{header}' may only have printable ASCII "
            "characters"
        )
    return value
