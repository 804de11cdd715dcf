"""Tables of lakes on a real cluster: executors that did not write read the rows of each write."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tests.kit import iceberg_tables
from tests.kit.fault_clusters import Served
from tests.kit.lake_clusters import ICE, lake_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
EXECUTORS = 2
ROWS = pa.table({"id": pa.array(range(1_000), pa.int64()), "v": ["a"] * 1_000})


@dataclass(frozen=True, slots=True)
class Running:
    folder: Path
    served: Served

    def count(self, sql: str) -> int:
        (row,) = self.served.ask(sql).rows
        (count,) = row.values()
        return int(count)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("c")
    kept = {**ICE, "name": "kept", "acceleration": {"enabled": True}}
    with lake_cluster(folder, ROWS, EXECUTORS, kept) as (_, served):
        served.until_ready(EXECUTORS)
        yield Running(folder, served)


@pytest.mark.parametrize("table", ["ice", "del"])
def test_each_insert_is_seen_by_the_next_statements(running: Running, table: str) -> None:
    before = running.count(f"SELECT count(*) AS n FROM {table}")
    for turn in range(1, 5):
        first = 10_000 * turn
        written = f"INSERT INTO {table} SELECT id + {first}, v FROM {table} WHERE id < 500"
        assert running.count(written) == 500
        assert running.count(f"SELECT count(*) AS n FROM {table}") == before + 500 * turn
        assert running.count(f"SELECT count(*) AS n FROM {table} WHERE id >= {first}") == 500


def test_changes_are_seen_by_the_next_statements(running: Running) -> None:
    running.count("DELETE FROM ice WHERE id >= 1000")
    assert running.count("UPDATE ice SET v = 'b' WHERE id % 2 = 0") == 500
    assert running.count("DELETE FROM ice WHERE id % 4 = 0") == 250
    assert running.count("SELECT count(*) AS n FROM ice WHERE v = 'b'") == 250
    merge = (
        "MERGE INTO ice USING (SELECT id + 500 AS id FROM ice) AS s ON ice.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert running.count(merge) == 750
    (found,) = running.served.ask(
        "SELECT count(*) AS n, count(DISTINCT id) AS d, count(v) AS v FROM ice"
    ).rows
    assert found == {"n": 1125, "d": 1125, "v": 750}
    judged = iceberg_tables.judge(running.folder / "t")
    assert judged.num_rows == 1125


def test_accelerated_rows_follow(running: Running) -> None:
    total = running.count("SELECT count(*) AS n FROM ice")
    assert running.count("INSERT INTO kept VALUES (-1, 'k'), (-2, 'k')") == 2
    assert running.count("UPDATE kept SET v = 'kk' WHERE id = -1") == 1
    assert running.count("SELECT count(*) AS n FROM kept WHERE v = 'kk'") == 1
    assert running.count("SELECT count(*) AS n FROM kept") == total + 2
