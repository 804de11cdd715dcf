"""The process that serves the API contains no engine: nothing in it reads, plans or runs SQL.

An import contract in `pyproject.toml` checks that no module imports one, not even in a function.
"""

import subprocess
import sys

_SCRIPT = """
import sys
import caraway_scheduler.dispatch.cluster
import caraway_scheduler.composition.runtime
print(*sorted({"datafusion", "substrait", "sqloxide"} & sys.modules.keys()))
"""


def test_importing_the_scheduler_loads_no_engine() -> None:
    command = [sys.executable, "-c", _SCRIPT]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.split()) == (0, []), ended.stderr
