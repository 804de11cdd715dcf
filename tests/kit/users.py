"""Drops root's rights, because root can read all files."""

import contextlib
import os
from collections.abc import Iterator

_NOBODY = 65534


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Drop root's rights for the block, if the process has them."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
