"""Root may read everything; these tests must see what others see."""

import contextlib
import os
from collections.abc import Iterator

_NOBODY = 65534


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Give up root's rights for the block, where we have them."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
