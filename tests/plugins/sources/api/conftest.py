"""Servers of the tests of APIs."""

from collections.abc import Iterator

import pytest

from tests.kit import api_server
from tests.kit.api_server import ApiServer


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server.running() as made:
        yield made


@pytest.fixture
def other() -> Iterator[ApiServer]:
    with api_server.running() as made:
        yield made
