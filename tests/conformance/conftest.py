"""A server for the sources that need one."""

from collections.abc import Iterator

import pytest

from tests.kit.postgres import Server, serving


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with serving() as server:
        yield server
