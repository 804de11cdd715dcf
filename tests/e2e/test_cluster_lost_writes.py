"""An executor is killed while it writes to a lake: the table has all rows of a statement, or none.

Each statement is killed as a file of it appears, so at another moment between its rows and its
commit. Its answer has to be its count, or an error that says what is sure.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from tests.kit import iceberg_tables
from tests.kit.deadlines import until
from tests.kit.fault_clusters import Answer, Served
from tests.kit.lake_clusters import lake_cluster
from tests.kit.ray_cluster import RayCluster, descendants

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
EXECUTORS, READY = 3, 2
ROWS = {"ice": 3_000_000, "del": 12_000_000}
"""The writes are so long that the heartbeats of executors tell of them."""
FIRST = pa.table({"id": pa.array([0], pa.int64()), "v": ["a"]})
MOMENTS = {
    "ice": ["", "catalog.db-journal", "t/metadata/*.metadata.json"],
    "del": ["", "d/*.parquet"],
}
"""The files whose appearance ends the executor; without a pattern, its work is enough."""
SURE = ("no row was written so far", "no row was inserted")


@dataclass
class Lakes:
    folder: Path
    of: RayCluster
    served: Served
    written: dict[str, int] = field(default_factory=lambda: {"ice": 1, "del": 1})

    def insert(self, table: str, pattern: str) -> Answer:
        """Insert rows, and kill the executor that does it."""
        before, processes = self._files(pattern), self._processes()
        incarnations = self.served.incarnations()
        first, count = self.written[table] * 10 * ROWS[table], ROWS[table]
        sql = f"INSERT INTO {table} SELECT value + {first}, 'row' FROM range({count})"
        answer = self.served.begin(sql)
        writer = until(self._writer, "an executor writes", every_s=0.001)
        until(
            lambda: self._files(pattern) != before or not pattern or answer.done(),
            f"a file {pattern} is there",
            every_s=0.001,
        )
        for pid in processes[writer]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        found = answer.result(300)
        until(lambda: self.served.incarnations().get(writer) != incarnations[writer],
              f"{writer} is another one", 180)  # fmt: skip
        return found

    def _writer(self) -> str:
        told = self.served.executors().items()
        return next((name for name, each in told if each["active_tasks"]), "")

    def _processes(self) -> dict[str, list[int]]:
        """Return the processes of each executor that write: its actor, and engines of it."""
        actors = {name: self.of.actor_pid(name) for name in self.of.executors}
        return {name: [pid, *descendants(pid)] for name, pid in actors.items()}

    def _files(self, pattern: str) -> set[Path]:
        return set(self.folder.glob(pattern)) if pattern else set()

    def count(self, table: str) -> int:
        """Return the rows as libraries of others read them; no row may be there twice."""
        if table == "ice":
            rows = iceberg_tables.catalog(self.folder).load_table("n.t").scan().to_arrow()
        else:
            rows = deltalake.DeltaTable(self.folder / "d").to_pyarrow_table()
        ids = rows.column("id")
        assert len(ids.unique()) == len(ids)
        return len(ids)


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakes]:
    folder = tmp_path_factory.mktemp("w")
    with lake_cluster(folder, FIRST, EXECUTORS, memory="1GiB") as (of, served):
        yield Lakes(folder, of, served)


@pytest.mark.parametrize(("table", "pattern"), [(t, p) for t in MOMENTS for p in MOMENTS[t]])
def test_a_killed_write_is_there_whole_or_not_at_all(
    lakes: Lakes, table: str, pattern: str
) -> None:
    lakes.served.until_ready(READY)
    before, count = lakes.count(table), ROWS[table]
    answer = lakes.insert(table, pattern)
    added = lakes.count(table) - before
    print(f"{table} {pattern}: {answer.status} {added} {answer.text[:200]}")
    assert added in (0, count)
    if answer.status == 200:
        assert (answer.rows, added) == ([{"count": count}], count)
    elif any(each in answer.error for each in SURE):
        assert added == 0
    else:
        assert "look" in answer.error
    if not pattern:
        assert (answer.status == 200, added) == (False, 0)
    lakes.written[table] += 1
    # The table is written again, by whoever is left.
    again = lakes.served.ask(f"INSERT INTO {table} VALUES ({-lakes.written[table]}, 'again')")
    assert again.rows == [{"count": 1}]
    assert lakes.count(table) == before + added + 1
