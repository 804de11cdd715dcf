"""Executors of a real cluster report the memory of their work, and none of it afterwards.

What the process keeps all the same differs from run to run: see decision 0063, and
tests/executor/resources/test_freeing.py.
"""

import threading
from collections.abc import Iterator

import pytest

from tests.kit.deadlines import until
from tests.kit.fault_clusters import (
    BOUND_S,
    KEYS,
    LEFT_ROWS,
    QUICK,
    WIDE,
    FaultCluster,
    fault_cluster,
    in_thread,
)

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
ROWS = LEFT_ROWS * 6000 // KEYS
SORTED = (
    "SELECT count(*) AS n, max(r) AS most FROM (SELECT row_number() OVER (ORDER BY w, v, id) AS r "
    f"FROM ({WIDE.replace('b.id < 2000', 'b.id < 6000')}))"
)
"""Its memory is several times what a first statement leaves for later."""
EXECUTORS = ("e1", "e2")
_SHARE = 0.1
"""The share of the limit that statements must use, and less than which stays."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with fault_cluster(tmp_path_factory.mktemp("m"), 2, memory="512MiB") as running:
        yield running


def shares(cluster: FaultCluster) -> list[float]:
    """Return the memory in use by its limit, as autoscaling sees it."""
    told = cluster.served.executors()
    return [told[each]["memory_used_bytes"] / told[each]["memory_bytes"] for each in EXECUTORS]


def asked_until(cluster: FaultCluster, ends: threading.Event) -> int:
    """Ask a small statement again and again; return how often."""
    count = 0
    while not ends.is_set():
        assert cluster.served.ask(QUICK).rows
        count += 1
    return count


def test_the_share_in_use_falls_after_work_and_beside_small_statements(
    cluster: FaultCluster,
) -> None:
    until(lambda: max(shares(cluster)) == 0, "no memory is in use before work", BOUND_S)
    busiest = 0.0
    for _ in range(3):
        running = in_thread(lambda: cluster.served.ask(SORTED))
        while not running.done():
            busiest = max(busiest, *shares(cluster))
        assert running.result().rows == [{"n": ROWS, "most": ROWS}]
    assert busiest > _SHARE, "the statement is too small to show anything"

    # Executors that always have a small statement never return what a large one left.
    ends = threading.Event()
    small = [in_thread(lambda: asked_until(cluster, ends)) for _ in range(4)]
    until(lambda: max(shares(cluster)) < busiest / 2, "it falls beside small statements", BOUND_S)
    ends.set()
    assert all(each.result() for each in small)
    until(lambda: max(shares(cluster)) < _SHARE, "it falls after them", BOUND_S)
