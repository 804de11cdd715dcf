"""The statements of the short runs are the same in every process."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.answers

MODULES = {
    "tests.differential.generated": "queries",
    "tests.differential.join_trees": "queries",
    "tests.differential.outer_unions": "unions",
    "tests.differential.pushed_statements": "statements",
    "tests.differential.test_row_changes": "statements",
    "tests.engine.known_faults.test_right_joins": "statements",
}
DRAW = """
import hashlib, importlib, json, sys
from tests.kit import generating
sums = {}
for module, name in json.loads(sys.argv[1]).items():
    seen = hashlib.sha256()
    strategy = getattr(importlib.import_module(module), name)()
    generating.check_same(strategy, 30, lambda drawn: seen.update(str(drawn).encode()))
    sums[module] = seen.hexdigest()
print(json.dumps(sums))
"""


def draw_all(hash_seed: int) -> dict[str, str]:
    """Return a checksum of the statements of each module, from a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", DRAW, json.dumps(MODULES)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    sums: dict[str, str] = json.loads(ended.stdout)
    return sums


@pytest.fixture(scope="module")
def by_seed() -> list[dict[str, str]]:
    return [draw_all(1), draw_all(2)]


@pytest.mark.parametrize("module", MODULES)
def test_the_order_of_a_set_chooses_no_statement(
    module: str, by_seed: list[dict[str, str]]
) -> None:
    first, second = by_seed
    assert first[module] == second[module]
