"""How a process tells the one that started it that it is up."""

import json
import os
from collections.abc import Mapping


def write(fd: int | None, facts: Mapping[str, object]) -> None:
    """Write the facts as one line of JSON, and close the pipe; without one do nothing."""
    if fd is None:
        return
    with os.fdopen(fd, "w") as pipe:
        pipe.write(json.dumps({name: str(fact) for name, fact in facts.items()}) + "\n")
