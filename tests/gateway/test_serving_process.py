"""The process that serves the API contains no engine: nothing in it reads, plans or runs SQL.

An import contract in `pyproject.toml` checks that no module imports one, not even in a function.
"""

import subprocess
import sys

_ENGINES = ("datafusion", "substrait", "sqloxide")
_CLIENTS = ("anthropic", "jsonschema", "mcp", "openai", "xllamacpp")
_SCRIPT = """
import sys
import caraway_scheduler.dispatch.cluster
import caraway_gateway.composition.runtime
print(*sorted(set(sys.argv[1:]) & sys.modules.keys()))
"""


def test_importing_the_scheduler_loads_no_engine() -> None:
    assert _loaded(_ENGINES) == []


def test_importing_the_scheduler_loads_no_client_of_models_and_tools() -> None:
    """Together they take seconds, and a start needs none of them."""
    assert _loaded(_CLIENTS) == []


def _loaded(modules: tuple[str, ...]) -> list[str]:
    command = [sys.executable, "-c", _SCRIPT, *modules]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()
