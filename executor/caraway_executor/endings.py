"""How the process of an executor's actor ended, told from one process to the next in a file.

The supervisor writes why it ended the process; a fault in native code leaves its trace there. A
process that was killed from outside, or that ended with its machine, leaves nothing.
"""

import faulthandler
import json
from dataclasses import asdict
from pathlib import Path
from typing import IO

from caraway_core.suspects import End

_TRACE = ".trace"


class Ending:
    """The file of one executor."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def write(self, end: End) -> None:
        """Say why the process is ended; called by its supervisor, before it is."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(asdict(end)))

    def begin(self) -> End | None:
        """Return how the process before this one ended, and have faults of this one noted.

        A trace is moved aside, for those who look after the executor.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = self._path.read_text(errors="replace") if self._path.exists() else ""
        end = _read(text)
        if end is not None and end.cause == "crash":
            self._path.replace(self._path.with_suffix(_TRACE))
        self._file = self._path.open("wb", buffering=0)
        faulthandler.enable(self._file, all_threads=False)
        return end


def _read(text: str) -> End | None:
    if not text.strip():
        return None
    try:
        return End(**json.loads(text))
    except (ValueError, TypeError):
        return End("crash", "the engine had a fault")
