"""Recovery of a cluster of two schedulers after its processes are killed.

The times are printed; docs/operate/troubleshooting.md explains them. The tests assert that the
cluster recovers without help, answers correctly, and waits for no fixed timeout.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet

from caraway_scheduler.membership import roll_call
from tests.kit import valkey
from tests.kit.deadlines import until
from tests.kit.fault_clusters import Served
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
DATASETS = 6
ROWS = 500_000
BACK_S = 180
_HEAD = """\
version: v1
kind: Caraway
name: recovery
runtime:
  scheduler: {state_location: results}
  caching: {sql_results: {enabled: false}}
  query:
    distribution: {small_table_size: 1KiB, broadcast_size: 1KiB, gather_size: 1KiB}
datasets:
"""
_DATASET = """\
  - from: 'file:rows.parquet'
    name: d{number}
    acceleration: {{enabled: true, primary_key: id}}
"""


@dataclass
class Recovering:
    """The cluster, and the APIs of its schedulers."""

    of: RayCluster
    manifest: Path
    served: dict[str, Served] = field(default_factory=dict)

    def serve(self, *names: str) -> None:
        begun = [self.of.begin_scheduler(name, self.manifest) for name in names]
        for name, process in zip(names, begun, strict=True):
            process.wait_up()
            self.served[name] = Served(f"http://{process.facts['http']}")

    def until_well(self) -> None:
        """Wait until both schedulers have both executors and can read every dataset."""
        for served in self.served.values():
            served.until_ready(2, BACK_S)
            for number in range(DATASETS):
                until(partial(_reads, served, number), f"d{number} is read", BACK_S)

    def logs(self) -> str:
        return "".join(each.log.read_text() for each in self.of.schedulers.values())

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Print the times at which the visible state of executors changed, until recovery."""
        began, stop = time.monotonic(), threading.Event()
        watching = threading.Thread(target=self._watch, args=(began, stop), daemon=True)
        print(f"\n{what}")
        watching.start()
        try:
            yield
            self.until_well()
            print(f"{what}: all well after {time.monotonic() - began:.1f} s")
        finally:
            stop.set()
            watching.join(60)

    def _watch(self, began: float, stop: threading.Event) -> None:
        seen: dict[str, object] = {}
        while not stop.wait(0.1):
            for name, served in list(self.served.items()):
                now = _view(served)
                if seen.get(name) != now:
                    seen[name] = now
                    print(f"  {time.monotonic() - began:5.1f} s {name}: {now}")


def _view(served: Served) -> object:
    try:
        executors = served.executors()
        datasets = httpx.get(f"{served.url}/v1/datasets?status=true", timeout=60).json()
    except httpx.HTTPError as exc:
        return type(exc).__name__
    statuses: Sequence[str] = [str(each.get("status")) for each in datasets]
    counts: Mapping[str, int] = {each: statuses.count(each) for each in set(statuses)}
    return {
        **{name: f"{each['state']} {each['reason'] or ''}" for name, each in executors.items()},
        **counts,
    }


def _reads(served: Served, number: int) -> bool:
    answer = served.ask(f"SELECT count(*) AS n, sum(id) AS s FROM d{number}")
    return answer.status == 200 and answer.rows == [{"n": ROWS, "s": ROWS * (ROWS - 1) // 2}]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recovering]:
    folder = tmp_path_factory.mktemp("r")
    ids = pa.array(range(ROWS))
    table = pa.table({"id": ids, "w": pa.array([f"{each:040d}" for each in range(ROWS)])})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=50_000)
    manifest = folder / "caraway.yaml"
    manifest.write_text(_HEAD + "".join(_DATASET.format(number=n) for n in range(DATASETS)))
    with (
        valkey.serving(tcp=True) as server,
        ray_cluster(folder, 2, server.url, head_state=server.tcp_url) as of,
    ):
        recovering = Recovering(of, manifest)
        recovering.serve("s1", "s2")
        recovering.until_well()
        yield recovering


def test_killed_scheduler(cluster: Recovering) -> None:
    with cluster.timed("kill -9 of a scheduler"):
        cluster.of.schedulers["s1"].kill()
        cluster.serve("s1")


def test_killed_executor(cluster: Recovering) -> None:
    with cluster.timed("kill -9 of an executor"):
        cluster.of.executors["e2"].kill()
        cluster.of.begin("e2").wait_up()


def test_killed_head(cluster: Recovering) -> None:
    with cluster.timed("kill -9 of the head"):
        cluster.of.head.kill()
        cluster.of.begin_head().wait_up()


def test_nothing_waited_for_a_limit(cluster: Recovering) -> None:
    """Timeouts that expire are reported in the logs of the schedulers."""
    assert roll_call.TOO_LATE not in cluster.logs()
