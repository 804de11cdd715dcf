"""Executors of a real cluster report the memory of their work, none after it, and return it."""

from collections.abc import Iterator

import pytest

from caraway_executor.resources import usage
from tests.kit.deadlines import until
from tests.kit.fault_clusters import (
    BOUND_S,
    KEYS,
    LEFT_ROWS,
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


def kept(cluster: FaultCluster) -> list[int]:
    """Return the memory that the system cannot take back when it needs some."""
    return [usage.kept_bytes(cluster.of.actor_pid(each)) for each in EXECUTORS]


def test_the_share_in_use_and_memory_that_is_kept_fall_after_work(cluster: FaultCluster) -> None:
    until(lambda: max(shares(cluster)) == 0, "no memory is in use before work", BOUND_S)
    idle = kept(cluster)
    busiest, highest = 0.0, idle
    for _ in range(3):
        running = in_thread(lambda: cluster.served.ask(SORTED))
        while not running.done():
            busiest = max(busiest, *shares(cluster))
            highest = list(map(max, highest, kept(cluster)))
        assert running.result().rows == [{"n": ROWS, "most": ROWS}]

    assert busiest > _SHARE, "the statement is too small to show anything"
    until(lambda: max(shares(cluster)) < _SHARE, "the reported share falls", BOUND_S)

    grown = list(map(int.__sub__, highest, idle))
    until(
        lambda: all(
            now - was < most / 2 for now, was, most in zip(kept(cluster), idle, grown, strict=True)
        ),
        "memory is given back",
        BOUND_S,
    )
