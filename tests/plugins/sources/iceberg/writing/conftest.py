"""A small table in a catalog in SQLite, and one behind REST."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import SMALL, Written, create


@pytest.fixture(params=["sqlite", "rest"])
def small_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    written = create(tmp_path, SMALL)
    if request.param == "sqlite":
        yield written
        return
    with written_tables.over_rest(written) as served:
        yield served
