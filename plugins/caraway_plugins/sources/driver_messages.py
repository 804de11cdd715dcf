"""Messages of drivers and servers: what they mean, and what of them is shown."""

import re
from collections.abc import Iterable

_LONGEST = 200
_REFUSED = re.compile(
    r"authentication failed|no password supplied|access denied|permission denied|login failed|"
    r'role "[^"]*" does not exist|State: 28',
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"://[^/@]*:([^/@]+)@|(?:password|pwd|token)=([^\s;&]+)", re.IGNORECASE)
_OF_SERVER = re.compile(r"^(?:.*:\s*)?(?:ERROR|FATAL):\s+(.*)$", re.MULTILINE)
_NAN = re.compile(r"""boolean: "nan"|'nan\?'""", re.IGNORECASE)
NAN_COMPARED = (
    "a condition compares a NaN, which the database does otherwise than this runtime; set it to "
    "NULL first, or run the statement in the database"
)


def is_of_nan(text: str) -> bool:
    """Return whether a message is that of a comparison with NaN, see `Dialect.fails`."""
    return bool(_NAN.search(text))


def is_refused(text: str) -> bool:
    """Return whether a message says that the login, or a right of its user, is refused."""
    return bool(_REFUSED.search(text))


def is_unfit(text: str) -> bool:
    """Return whether a message says that a driver has no form for a value."""
    return "overflows when converted" in text


def of_server(text: str) -> str | None:
    """Return the message of the server in one of a driver, if it is marked."""
    found = _OF_SERVER.search(text)
    return found[1] if found else None


def shown(text: str, secrets: Iterable[str]) -> str:
    """Return a message in one line, unless it holds a secret or a password of an address."""
    hidden = set(secrets)
    for found in _PASSWORD.finditer(" ".join(hidden)):
        hidden.update(each for each in found.groups() if each)
    line = " ".join(text.split())
    if any(each and each in line for each in hidden):
        return "the message of the server holds the login"
    return line[:_LONGEST]
