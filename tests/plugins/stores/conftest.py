"""Each adapter in turn, in a folder of its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway_core.protocols.results import ResultStore
from tests.kit import valkey
from tests.plugins.stores import adapters
from tests.plugins.stores.adapters import StateHarness


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """One server for all tests; each has a prefix of its own there."""
    with valkey.serving() as server:
        os.environ[valkey.ENVIRON] = server.url
        yield server.url
        del os.environ[valkey.ENVIRON]


@pytest.fixture(params=adapters.STATE)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> StateHarness:
    if request.param == "redis":
        request.getfixturevalue("valkey_url")
    return StateHarness(request.param, tmp_path)


@pytest.fixture(params=adapters.RESULTS)
def results(request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
    return adapters.make_results(request.param, tmp_path / "results")
