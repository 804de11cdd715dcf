"""Signs webhooks as Standard Webhooks say."""

import base64
import binascii
import hashlib
import hmac
import secrets
from datetime import datetime

from caraway_management.domain import refusals

PREFIX = "whsec_"
_LEAST_BYTES, _MOST_BYTES = 24, 64


def new_secret() -> str:
    """Return a new signing secret."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def check_secret(secret: str) -> None:
    """Check a signing secret that a user gives.

    Raises:
        RefusedError: it is none.
    """
    try:
        key = _key(secret)
    except (ValueError, binascii.Error):
        key = b""
    if not _LEAST_BYTES <= len(key) <= _MOST_BYTES:
        raise refusals.invalid_field(
            "targets.http.signing_secret",
            f"must be {PREFIX} and {_LEAST_BYTES} to {_MOST_BYTES} bytes in base64",
        )


def headers(secret: str, id_: str, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of a webhook. Repetitions have the same id, and each its own time."""
    timestamp = str(int(at.timestamp()))
    signed = b".".join((id_.encode(), timestamp.encode(), body))
    signature = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return {
        "webhook-id": id_,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }


def _key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        raise ValueError("a signing secret begins with whsec_")
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
