"""The API over an in-memory job service, in a runtime that the tests of a module share."""

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest

from tests.gateway.api.queries.serving import Serving, serving_over
from tests.kit.jobs import FakeJobService
from tests.kit.runtime import Running
from tests.kit.shared_runtime import Relay, entered

Shared = tuple[Running, Relay[FakeJobService]]


@pytest.fixture(scope="module")
def shared(
    loop_of_module: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    relay, folder = Relay(FakeJobService()), tmp_path_factory.mktemp("queries")
    service = cast(FakeJobService, relay)
    with entered(loop_of_module, lambda: serving_over(folder, service)) as runtime:
        yield runtime, relay


@pytest.fixture
def server(shared: Shared) -> Iterator[Serving]:
    """The runtime, with a job service of this test."""
    runtime, relay = shared
    relay.current = FakeJobService()
    yield Serving(runtime.api, relay.current, runtime.services)
    assert relay.current.open_reads == 0
