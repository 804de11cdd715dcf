"""Servers of both products, and an API in their place for answers that they do not give here."""

from collections.abc import Iterator

import pytest

from tests.kit import api_server, search_server
from tests.kit.api_server import ApiServer
from tests.kit.search_server import SearchServer


@pytest.fixture(scope="session", params=["opensearch", "elasticsearch"])
def server(request: pytest.FixtureRequest) -> Iterator[SearchServer]:
    with search_server.serving(request.param) as running:
        yield running


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with api_server.running() as running:
        yield running
