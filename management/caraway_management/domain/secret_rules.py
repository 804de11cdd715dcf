"""Rules for secrets: their number, their length, and the part that is shown."""

from caraway_management.domain import refusals

MASK = "********"
MOST_SECRETS = 200
"""Of an organization, and of a project."""
MOST_VALUE_BYTES = 32 * 1024
MOST_SEALED_BYTES = 512 * 1024
"""Of all secrets of an organization, or of a project. Those of both fit in one Secret of
Kubernetes, which holds 1 MiB.
"""


def check_value(value: str) -> str:
    """Return the value of a secret.

    Raises:
        RefusedError: it is empty, too long, or no valid text. The message has no part of it.
    """
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise refusals.invalid_field("value", "must be valid Unicode text") from None
    if not size:
        raise refusals.invalid_field("value", "must not be empty; delete the secret instead")
    if size > MOST_VALUE_BYTES:
        raise refusals.invalid_field("value", f"must have at most {MOST_VALUE_BYTES} bytes")
    if "\0" in value:
        # Environments of processes cannot hold it.
        raise refusals.invalid_field("value", "must not contain the character U+0000")
    return value


def check_room(number: int, sealed_bytes: int) -> None:
    """Check that an organization or a project may have this number of secrets.

    Raises:
        RefusedError: there are too many, or they are too large together.
    """
    if number > MOST_SECRETS:
        raise refusals.invalid(f"there may be at most {MOST_SECRETS} secrets", "too_many_secrets")
    if sealed_bytes > MOST_SEALED_BYTES:
        raise refusals.invalid(
            f"all secrets together may have at most {MOST_SEALED_BYTES * 3 // 4} bytes",
            "too_many_secrets",
        )
