"""Servers for the sources that need one."""

from collections.abc import Iterator

import pytest

from tests.kit import mariadb as mariadb_tables
from tests.kit.mariadb import Mariadb
from tests.kit.postgres import Server, serving


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Mariadb]:
    with mariadb_tables.serving() as server:
        yield server
