"""Routes are tested over SQLite; `make test-databases` repeats them over PostgreSQL."""

from pathlib import Path

import pytest
from sqlalchemy.engine import URL

from tests.kit import management


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def prepared_url(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    """A new database of each kind, with tables and plans."""
    return management.prepared_url(request, tmp_path)
