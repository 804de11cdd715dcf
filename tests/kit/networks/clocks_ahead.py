"""Clocks of processes that are ahead, without a privilege or a library of the system."""

import os
from collections.abc import Mapping
from pathlib import Path

_FOLDER = Path(__file__).with_name("ahead")
"""Python imports its `sitecustomize` before anything else, in every process with the variable."""


def environ(ahead_s: float) -> Mapping[str, str]:
    """Return the variables of a process, and of its children in Python."""
    others = os.environ.get("PYTHONPATH", "")
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_FOLDER), others))),
        "CARAWAY_TEST_CLOCK_AHEAD_S": str(ahead_s),
    }
