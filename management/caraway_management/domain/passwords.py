"""Rules for passwords."""

import re
import unicodedata

from caraway_management.domain import names, refusals

SHORTEST, LONGEST = 12, 256
_LEAST_CHARACTERS = 5
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def check_password(text: str, username: str) -> str:
    """Return a new password in the form that is hashed.

    Raises:
        RefusedError: it is too short or too long, easy to guess, or has control characters.
    """
    password = normalize(text)
    if not SHORTEST <= len(password) <= LONGEST:
        raise refusals.invalid_field("password", f"use {SHORTEST} to {LONGEST} characters")
    if _UNUSABLE.search(password):
        raise refusals.invalid_field("password", "must not contain control characters")
    if len(set(password)) < _LEAST_CHARACTERS or names.key(username) in names.key(password):
        raise refusals.invalid_field(
            "password", "is easy to guess; use more different characters, and not the username"
        )
    return password


def normalize(text: str) -> str:
    """Return a password as it is compared: keyboards write one character in several ways."""
    return unicodedata.normalize("NFKC", text)
