"""Records how an executor's process ended, in a file that the next process reads.

The supervisor writes why it ended the process; a fault in native code writes its trace there. A
process that was killed externally, or that ended with its machine, leaves nothing.
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
        """Record why the process is about to be ended. Called by its supervisor."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(asdict(end)))

    def begin_process(self) -> End | None:
        """Return how the previous process ended, and record faults of this one.

        A trace is moved to another file, for operators.
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
        return End("crash", "the engine crashed")
