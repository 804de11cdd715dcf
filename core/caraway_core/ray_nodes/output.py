"""Keeps what Ray's libraries print in a process of ours out of what it says to its user."""

import os
import sys
from pathlib import Path


def divert(file: Path) -> None:
    """Send the error output of this process's libraries to the file; Python keeps the real one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    ours = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    with file.open("ab") as theirs:
        os.dup2(theirs.fileno(), 2)
    sys.stderr = ours
