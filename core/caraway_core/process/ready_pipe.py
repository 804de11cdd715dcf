"""Reports to the parent process that this process is ready."""

import json
import os
from collections.abc import Mapping


def write(fd: int | None, facts: Mapping[str, object]) -> None:
    """Write the facts to the pipe as one line of JSON and close it; do nothing without a pipe."""
    if fd is None:
        return
    with os.fdopen(fd, "w") as pipe:
        pipe.write(json.dumps({name: str(fact) for name, fact in facts.items()}) + "\n")
