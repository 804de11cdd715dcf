"""Fixtures that several tests of the sources share."""

from collections.abc import Iterator

import pytest

from tests.kit import api_server
from tests.kit.api_server import ApiServer
from tests.kit.s3 import s3_server

__all__ = ["s3_server"]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server.running() as made:
        yield made


@pytest.fixture
def other() -> Iterator[ApiServer]:
    with api_server.running() as made:
        yield made
