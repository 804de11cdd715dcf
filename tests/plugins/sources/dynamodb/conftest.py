"""A server of DynamoDB."""

from collections.abc import Iterator

import pytest

from tests.kit import dynamodb_server
from tests.kit.dynamodb_server import DynamodbServer


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[DynamodbServer]:
    with dynamodb_server.serving() as server:
        yield server
