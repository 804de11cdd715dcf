"""Keeps what Ray prints in a process of ours out of what the process says to its user."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def diverted(file: Path) -> Iterator[TextIO]:
    """Send what is printed to the file, by Python and to the error output by libraries.

    Yields the real error output. Whoever took hold of `sys.stdout` before writes where it did.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    real, ours = os.dup(2), (sys.stdout, sys.stderr)
    with (
        file.open("a", encoding="utf-8", errors="backslashreplace", buffering=1) as theirs,
        os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace") as user,
    ):
        os.dup2(theirs.fileno(), 2)
        sys.stdout = sys.stderr = theirs
        try:
            yield user
        finally:
            sys.stdout, sys.stderr = ours
            os.dup2(real, 2)
            os.close(real)
