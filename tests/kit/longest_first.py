"""A pytest plugin that hands the longest modules to the workers of xdist first.

With `--dist loadfile` a module stays on one worker. If a long module began last, the other worker
would be idle while it ends.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

LONGEST = (
    "tests/differential/test_corpus.py",
    "tests/e2e/test_run.py",
    "tests/hostile/test_standalone.py",
    "tests/scheduler/jobs/test_processes.py",
    "tests/e2e/test_queries.py",
    "tests/e2e/test_clients.py",
    "tests/management/api/test_route_table.py",
    "tests/management/api/test_isolation.py",
    "tests/management/api/test_attacks.py",
    "tests/core/test_extras.py",
    "tests/differential/test_joins.py",
    "tests/differential/test_generated.py",
    "tests/engine/known_faults/test_faults.py",
    "tests/executor/engines/test_engines.py",
    "tests/executor/engines/test_silent_engines.py",
    "tests/differential/test_tpch.py",
    "tests/charts/test_chart.py",
    "tests/engine/sharing/test_sharing.py",
    "tests/gateway/api/test_acceleration.py",
    "tests/gateway/api/test_changes_bad_days.py",
    "tests/gateway/api/test_acceleration_bad_days.py",
    "tests/gateway/api/test_writes.py",
    "tests/gateway/flight/test_ingesting.py",
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
