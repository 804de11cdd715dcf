"""The databases that the tests run over.

`make test` runs the service over SQLite, and its store over both; `make test-databases` repeats the
service over PostgreSQL.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from caraway_core.process import logs
from tests.kit import management, postgres
from tests.kit.management import Installation


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    """A PostgreSQL server, started by the first test that asks for it."""
    with postgres.serving() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: postgres.Server) -> str:
    """A PostgreSQL database with tables and plans, which others are copied from."""
    return management.prepare_template(postgres_server)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    """A new, empty database of each kind."""
    if request.param == "sqlite":
        return management.embedded_url(tmp_path)
    return management.new_postgres_url(request.getfixturevalue("postgres_server"))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def prepared_url(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    """A new database of each kind, with tables and plans."""
    return management.prepared_url(request, tmp_path)


@pytest.fixture
def installation(prepared_url: URL) -> Iterator[Installation]:
    """A service over each kind of database."""
    with management.installation(prepared_url, is_prepared=True) as made:
        yield made


@pytest.fixture(autouse=True)
def unchanged_logging() -> Iterator[None]:
    """Take back what commands that run in this process configure."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    loggers = [root, *map(logging.getLogger, logs._COMPONENTS)]
    levels = [logger.level for logger in loggers]
    yield
    root.handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
