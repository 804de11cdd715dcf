"""Keeps what Ray prints in a process of ours out of what the process says to its user."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def diverted(file: Path) -> Iterator[TextIO]:
    """Send the error output to the file, Python's and that of libraries; yields the real one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    real, ours = os.dup(2), sys.stderr
    with (
        file.open("a", encoding="utf-8", errors="backslashreplace", buffering=1) as theirs,
        os.fdopen(os.dup(2), "w", encoding="utf-8", errors="backslashreplace") as user,
    ):
        os.dup2(theirs.fileno(), 2)
        sys.stderr = theirs
        try:
            yield user
        finally:
            sys.stderr = ours
            os.dup2(real, 2)
            os.close(real)
