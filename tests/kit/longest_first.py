"""A pytest plugin that hands the longest modules to the workers of xdist first.

With `--dist loadfile` a module stays on one worker. If a long module began last, the other worker
would be idle while it ends.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

LONGEST = (
    "tests/differential/test_dialects.py",
    "tests/e2e/test_run.py",
    "tests/differential/test_corpus.py",
    "tests/executor/engines/test_silent_engines.py",
    "tests/e2e/test_queries.py",
    "tests/hostile/test_standalone.py",
    "tests/core/test_extras.py",
    "tests/differential/test_row_changes.py",
    "tests/management/api/test_route_table.py",
    "tests/differential/test_generated.py",
    "tests/e2e/test_clients.py",
    "tests/conformance/test_row_changes.py",
    "tests/scheduler/jobs/test_processes.py",
    "tests/gateway/api/test_writes.py",
    "tests/conformance/test_sources.py",
    "tests/client/cli/test_reference.py",
    "tests/gateway/iceberg/test_snapshots.py",
    "tests/differential/test_tpch.py",
    "tests/differential/test_joins.py",
    "tests/operator/reconciling/test_reconcile_rollout.py",
    "tests/management/api/test_isolation.py",
    "tests/management/api/test_attacks.py",
    "tests/engine/known_faults/test_faults.py",
    "tests/executor/engines/test_engines.py",
    "tests/charts/test_chart.py",
    "tests/differential/test_judge.py",
)
"""The modules that take longest in `make test`, by the table that `suite_times` prints."""


def longest_first(items: Sequence[T], module_of: Callable[[T], str]) -> list[T]:
    """Return the items of `LONGEST` first, in its order; then the others by module."""
    places = {module: place for place, module in enumerate(LONGEST)}

    def place(item: T) -> tuple[int, str]:
        module = module_of(item)
        return places.get(module, len(places)), module

    return sorted(items, key=place)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests of a worker; all workers collect the same tests and sort them alike."""
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items, lambda item: item.nodeid.split("::")[0])
