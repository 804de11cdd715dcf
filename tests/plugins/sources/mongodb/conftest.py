"""A server of MongoDB's protocol."""

from collections.abc import Iterator

import pytest

from tests.kit import mongo_server
from tests.kit.mongo_server import MongoServer


@pytest.fixture(scope="session")
def mongodb() -> Iterator[MongoServer]:
    with mongo_server.serving() as server:
        yield server
