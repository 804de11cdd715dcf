"""Each adapter in turn, in a folder of its own."""

from pathlib import Path

import pytest

from caraway_core.protocols.results import ResultStore
from tests.plugins.stores import adapters
from tests.plugins.stores.adapters import StateHarness


@pytest.fixture(params=adapters.STATE)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> StateHarness:
    return StateHarness(request.param, tmp_path)


@pytest.fixture(params=adapters.RESULTS)
def results(request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
    return adapters.make_results(request.param, tmp_path / "results")
