"""Splits URLs that may have a password in them, without showing it in errors."""

from urllib.parse import SplitResult, parse_qsl, urlsplit

_CODES = (
    "it has no host, or its user or password has a character that must be written as a code: "
    "/ as %2F, ? as %3F, # as %23, @ as %40"
)


def split(url: str) -> SplitResult:
    """Split a URL whose port can be read, and whose user and password are before its host.

    A password with a `/` ends the host of a URL early. The rest of it is then a path, which users
    of the URL would show in their errors.

    Raises:
        ValueError: it is no such URL. The message has no part of it.
    """
    try:
        parts = urlsplit(url)
        names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    except ValueError:
        raise ValueError("it cannot be split into its parts") from None
    is_file = parts.scheme == "unix"
    if parts.fragment or any("@" in each for each in names) or ("@" in parts.path and not is_file):
        raise ValueError(_CODES)
    try:
        is_port = parts.port != 0
    except ValueError:
        is_port = False
    if not is_port:
        raise ValueError("its port is not a number from 1 to 65535")
    return parts
