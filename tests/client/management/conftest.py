from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway import Management
from tests.kit import served_management
from tests.kit.management import Installation


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Installation, str]]:
    """A management service that listens, and its URL."""
    with served_management.served(tmp_path) as found:
        yield found


@pytest.fixture
def url(served: tuple[Installation, str]) -> str:
    """The URL of the service."""
    return served[1]


@pytest.fixture
def installation(served: tuple[Installation, str]) -> Installation:
    """The service itself."""
    return served[0]


@pytest.fixture
def token(installation: Installation) -> str:
    """The token of ada, who owns the organization acme."""
    ada = installation.add_user("ada", is_administrator=True)
    installation.add_org("acme", ada)
    value = installation.sign_in(ada).token
    assert value is not None
    return value


@pytest.fixture
def management(url: str, token: str) -> Iterator[Management]:
    """A client with the token of ada."""
    with Management(token, url=url, max_retries=0) as made:
        yield made
