"""Servers of the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.kit import valkey


@pytest.fixture
def server() -> Iterator[valkey.Server]:
    with valkey.serving() as server:
        yield server
