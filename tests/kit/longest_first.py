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
    "tests/conformance/test_row_changes.py",
    "tests/conformance/test_sources.py",
    "tests/differential/test_corpus.py",
    "tests/differential/test_tpch.py",
    "tests/executor/engines/test_silent_engines.py",
    "tests/differential/test_row_changes.py",
    "tests/e2e/test_clients.py",
    "tests/differential/test_generated.py",
    "tests/hostile/test_standalone.py",
    "tests/engine/known_faults/test_name_shapes.py",
    "tests/conformance/test_merges.py",
    "tests/e2e/test_queries.py",
    "tests/core/test_extras.py",
    "tests/management/api/test_route_table.py",
    "tests/scheduler/jobs/test_processes.py",
    "tests/gateway/api/test_writes.py",
    "tests/client/cli/test_reference.py",
    "tests/gateway/iceberg/test_histories.py",
    "tests/differential/test_joins.py",
    "tests/operator/reconciling/test_reconcile_rollout.py",
    "tests/management/api/test_isolation.py",
    "tests/management/api/test_attacks.py",
    "tests/engine/known_faults/test_faults.py",
    "tests/executor/engines/test_engines.py",
    "tests/charts/test_chart.py",
    "tests/differential/test_judge.py",
    "tests/differential/test_generators.py",
    "tests/e2e/test_foreign_source.py",
    "tests/gateway/api/test_changes_bad_days.py",
    "tests/gateway/api/test_change_sources.py",
    "tests/conformance/test_inserts.py",
    "tests/gateway/api/test_acceleration_bad_days.py",
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
