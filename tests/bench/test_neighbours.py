"""Processes that compute beside a measurement end with it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import neighbours, quotas
from bench.data import TABLES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in TABLES:
        pq.write_table(pa.table({"a": [1]}), tmp_path / f"{name}.parquet")
    return tmp_path


def test_they_end_with_the_block(folder: Path) -> None:
    try:
        with neighbours.computing(2, 0.1, folder) as pids:
            assert len(set(pids)) == 2
            assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    except quotas.NoQuotasError as exc:
        pytest.skip(str(exc))
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_none_are_started_for_the_largest_cluster(folder: Path) -> None:
    with neighbours.computing(0, 0.1, folder) as pids:
        assert not pids
