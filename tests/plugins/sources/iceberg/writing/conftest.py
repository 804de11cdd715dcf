"""A small table in a catalog in SQLite, and one behind REST."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.sources.iceberg.writing import written_tables
from tests.plugins.sources.iceberg.writing.written_tables import SMALL, Written, create


@pytest.fixture(params=["sqlite", "rest", "first version"])
def small_table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    version = "1" if request.param == "first version" else "2"
    written = create(tmp_path, SMALL, properties={"format-version": version})
    if request.param != "rest":
        yield written
        return
    with written_tables.over_rest(written) as served:
        yield served
