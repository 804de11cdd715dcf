"""The statements of the short runs are the same in every process."""

import os
import subprocess
import sys

import pytest

MODULES = {
    "tests.differential.generated": "queries",
    "tests.differential.join_trees": "queries",
    "tests.differential.outer_unions": "unions",
    "tests.differential.pushed_statements": "statements",
    "tests.differential.test_row_changes": "statements",
    "tests.engine.known_faults.test_right_joins": "statements",
}
DRAW = """
import hashlib, importlib, sys
from tests.kit import generating
module, name = sys.argv[1:]
seen = hashlib.sha256()
strategy = getattr(importlib.import_module(module), name)()
generating.check_same(strategy, 30, lambda drawn: seen.update(str(drawn).encode()))
print(seen.hexdigest())
"""


def drawn(module: str, name: str, hash_seed: int) -> str:
    return subprocess.run(
        [sys.executable, "-c", DRAW, module, name],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.parametrize("module", MODULES)
def test_the_order_of_a_set_chooses_no_statement(module: str) -> None:
    assert drawn(module, MODULES[module], 1) == drawn(module, MODULES[module], 2)
