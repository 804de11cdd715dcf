"""Reads and creates the token that the processes of a cluster share."""

import contextlib
import os
import secrets
from pathlib import Path

from caraway_core.errors import CarawayError

_BYTES = 32


def make_token(file: Path) -> None:
    """Write a new token that only this user can read, unless the file exists.

    Raises:
        CarawayError: the file cannot be written.
    """
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(secrets.token_hex(_BYTES))
        # A link never replaces a file, so if two processes create the token, one of them wins.
        os.link(draft, file)
    except FileExistsError:
        return
    except OSError as exc:
        raise CarawayError(f"cannot write the token file '{file}': {exc.strerror}") from exc
    finally:
        with contextlib.suppress(OSError):  # It would hide why the file cannot be written.
            draft.unlink(missing_ok=True)


def read_token(file: Path) -> str:
    """Return the token of a cluster.

    Raises:
        CarawayError: the file cannot be read, or is empty.
    """
    try:
        token = file.read_text().strip()
    except OSError as exc:
        raise CarawayError(
            f"cannot read the token file '{file}': {exc.strerror}; set --token-file to the "
            "token file of the cluster's head"
        ) from exc
    except UnicodeDecodeError as exc:
        raise CarawayError(f"the token file '{file}' is no text") from exc
    if not token:
        raise CarawayError(f"the token file '{file}' is empty")
    return token
