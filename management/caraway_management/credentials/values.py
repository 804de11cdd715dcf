"""The values of credentials: a prefix that secret scanners recognise, randomness, a checksum."""

import hashlib
import hmac
import secrets
import string
import zlib
from enum import StrEnum

_ALPHABET = string.digits + string.ascii_letters
_RANDOM = 40
_SUM = 6
_HINT = 12


class Prefix(StrEnum):
    """The kinds of values."""

    PERSONAL_TOKEN = "cwp_"
    CLI_TOKEN = "cwc_"
    SESSION = "cws_"
    CSRF = "cwx_"
    REFRESH_TOKEN = "cwr_"
    AUTHORIZATION_CODE = "cwa_"
    CLIENT_SECRET = "cwo_"
    API_KEY = "cwk_"
    INVITATION = "cwi_"
    DEVICE_CODE = "cwd_"


def make(prefix: Prefix) -> str:
    """Return a new value with 238 random bits."""
    text = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return f"{prefix}{text}{_checksum(text)}"


def is_well_formed(value: str, prefix: Prefix) -> bool:
    """Return whether the value could have been made here; a wrong one needs no look-up."""
    text = value.removeprefix(prefix)
    body, check = text[:_RANDOM], text[_RANDOM:]
    return (
        value.startswith(prefix)
        and len(text) == _RANDOM + _SUM
        and text.isascii()
        and check == _checksum(body)
    )


def digest(value: str) -> str:
    """Return the hash that is stored; values are random, so it needs no salt and no stretching."""
    return hashlib.sha256(value.encode()).hexdigest()


def matches(value: str, stored: str) -> bool:
    """Compare a value with a stored hash, in a time that does not depend on either."""
    return hmac.compare_digest(digest(value), stored)


def hint(value: str) -> str:
    """Return the first characters of a value, by which lists show it."""
    return value[:_HINT]


def _checksum(text: str) -> str:
    number = zlib.crc32(text.encode())
    digits = ""
    for _ in range(_SUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
