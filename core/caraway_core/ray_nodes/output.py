"""Diverts Ray's output in our processes to a file, so that users do not see it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


@contextmanager
def diverted(file: Path) -> Iterator[TextIO]:
    """Redirect standard output and standard error to the file, also for native libraries.

    Yields the original standard error. References to `sys.stdout` that were taken before keep
    writing to the original.
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
