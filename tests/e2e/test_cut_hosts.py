"""A process that is cut off from the others for 20 s does not cost any of them its Ray node.

Each process is a network namespace. Each is cut off in both directions, and in one of them, with
the state in a Valkey and without.
"""

import contextlib
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import valkey
from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, QUICK, FaultCluster, fault_cluster, loaded
from tests.kit.networks import hosts
from tests.kit.networks.hosts import Network
from tests.kit.networks.switch import Pair
from tests.kit.ray_cluster import Host

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

CUT_S, PAUSE_S = 20.0, 2.0
CLIENT, VALKEY = "outside", "outside-valkey"
PROCESSES = ("head", "e1", "e2", "s1")
ADDRESSES = {"head": 1, "e1": 11, "e2": 12, "s1": 101, CLIENT: 254, VALKEY: 250}
"""The last numbers of the addresses of `RayCluster`, and of this process."""


@pytest.fixture(scope="module", params=["stored", "unstored"])
def cut_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[FaultCluster, Network]]:
    if reason := hosts.missing():
        warnings.warn(f"the network was not harmed: {reason}", stacklevel=1)
        pytest.skip(reason)
    prefix = f"10.{64 + os.getpid() % 128}.{os.getpid() // 128 % 256}"
    with hosts.network(prefix, ADDRESSES) as network:
        places = {name: Host(network.within(name)) for name in PROCESSES}
        folder = tmp_path_factory.mktemp("n")
        with contextlib.ExitStack() as stack:
            state = None
            if request.param == "stored":
                outside = {"host": network.addresses[VALKEY], "protected-mode": "no"}
                state = stack.enter_context(valkey.serving(tcp=True, **outside)).tcp_url
            cluster = stack.enter_context(
                fault_cluster(folder, 2, state, hosts=places, network=network.prefix)
            )
            yield cluster, network


def from_(host: str, network: Network) -> list[Pair]:
    return [(host, other) for other in network.addresses if other not in (host, CLIENT)]


def to(host: str, network: Network) -> list[Pair]:
    return [(other, one) for one, other in from_(host, network)]


@pytest.mark.parametrize("direction", ["both", "from", "to"])
@pytest.mark.parametrize("host", ["head", "e1", "s1"])
def test_a_host_that_is_cut_off_returns_with_its_node(
    cut_cluster: tuple[FaultCluster, Network], host: str, direction: str
) -> None:
    cluster, network = cut_cluster
    pairs = {"from": from_(host, network), "to": to(host, network)}
    pairs["both"] = pairs["from"] + pairs["to"]
    with nobody_leaves(cluster, f"{host}, {direction}"):
        cut_for(CUT_S, network, *pairs[direction])


@pytest.mark.parametrize("host", ["head", "e1", "s1"])
def test_cuts_in_a_row_are_survived(cut_cluster: tuple[FaultCluster, Network], host: str) -> None:
    cluster, network = cut_cluster
    with nobody_leaves(cluster, f"{host}, three in a row"):
        for _ in range(3):
            cut_for(CUT_S, network, *from_(host, network), *to(host, network))
            wait(PAUSE_S)


@contextlib.contextmanager
def nobody_leaves(cluster: FaultCluster, what: str) -> Iterator[None]:
    """Check that no process loses its Ray node within the block, and all answers meanwhile."""
    cluster.served.until_ready(2)
    # Otherwise this cut prolongs the one before: TCP waits as long again as it had no answer.
    until(lambda: not waiting_connections(cluster), "connections have recovered", 180)
    before = cluster.served.incarnations()
    joined = rejoins(cluster)
    with loaded(cluster.served, QUICK, 2) as load:
        yield
        began = time.monotonic()
        cluster.served.until_ready(2)
        print(f"\n{what}: ready {time.monotonic() - began:.1f} s after the cut")
        count = len(load.answers)
        until(lambda: len(load.answers) > count + 4, "statements are answered", BOUND_S)
    away = [each for each in load.answers if each.status != 200]
    print(f"{len(load.answers)} answers, not 200: {[(e.status, e.text[:90]) for e in away]}")
    assert all(each.status in (429, 503) and each.retry_after for each in away)
    answered = [each.rows for each in load.answers if each.status == 200]
    assert answered and all(rows == cluster.facts.quick for rows in answered)
    assert cluster.served.incarnations() == before
    assert rejoins(cluster) == joined
    assert all(each.popen.poll() is None for each in cluster.of.processes)


def cut_for(seconds: float, network: Network, *pairs: Pair) -> None:
    with network.cut(*pairs):
        wait(seconds)


def wait(seconds: float) -> None:
    ends = time.monotonic() + seconds
    until(lambda: time.monotonic() >= ends, "the time has passed", seconds + 5)


def waiting_connections(cluster: FaultCluster) -> int:
    """Count the connections of all hosts in which something was sent again without an answer."""
    tables = [Path(f"/proc/{each.popen.pid}/net/tcp") for each in cluster.of.processes]
    lines = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return sum(int(fields[6], 16) > 0 for fields in lines)


def rejoins(cluster: FaultCluster) -> int:
    """Count how often executors and schedulers have lost their Ray nodes."""
    processes = (*cluster.of.executors.values(), *cluster.of.schedulers.values())
    return sum(each.log.read_text().count("rejoining the cluster") for each in processes)
