"""A process that is cut off from the others for 20 s costs nobody its Ray node.

Each process is a network namespace. Each is cut off in both directions, and in one of them, with
the state in a Valkey.
"""

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

CUT_S = 20.0
CLIENT, VALKEY = "outside", "outside-valkey"
PROCESSES = ("head", "e1", "e2", "s1")
ADDRESSES = {"head": 1, "e1": 11, "e2": 12, "s1": 101, CLIENT: 254, VALKEY: 250}
"""The last numbers of the addresses of `RayCluster`, and of this process."""


@pytest.fixture(scope="module")
def cut_cluster(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[FaultCluster, Network]]:
    if reason := hosts.missing():
        warnings.warn(f"the network was not harmed: {reason}", stacklevel=1)
        pytest.skip(reason)
    prefix = f"10.{64 + os.getpid() % 128}.{os.getpid() // 128 % 256}"
    with hosts.network(prefix, ADDRESSES) as network:
        places = {name: Host(network.within(name)) for name in PROCESSES}
        folder = tmp_path_factory.mktemp("n")
        outside = {"host": network.addresses[VALKEY], "protected-mode": "no"}
        with (
            valkey.serving(tcp=True, **outside) as server,
            fault_cluster(
                folder, 2, server.tcp_url, hosts=places, network=network.prefix
            ) as cluster,
        ):
            yield cluster, network


def incarnations(cluster: FaultCluster) -> dict[str, str]:
    return {name: str(each["incarnation"]) for name, each in cluster.served.executors().items()}


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
    cluster.served.until_ready(2)
    # Otherwise this cut prolongs the one before: TCP waits as long again as it had no answer.
    until(lambda: not waiting_connections(cluster), "connections have recovered", 120)
    before = incarnations(cluster)
    joined = rejoins(cluster)
    pairs = {"from": from_(host, network), "to": to(host, network)}
    pairs["both"] = pairs["from"] + pairs["to"]
    with loaded(cluster.served, QUICK, 2) as load:
        ends = time.monotonic() + CUT_S
        with network.cut(*pairs[direction]):
            until(lambda: time.monotonic() >= ends, "the cut ends", CUT_S + 5)
        began = time.monotonic()
        cluster.served.until_ready(2)
        print(f"\n{host}, {direction}: ready {time.monotonic() - began:.1f} s after the cut")
        count = len(load.answers)
        until(lambda: len(load.answers) > count + 4, "statements are answered", BOUND_S)
    away = [each for each in load.answers if each.status != 200]
    print(f"{len(load.answers)} answers, not 200: {[(e.status, e.text[:90]) for e in away]}")
    assert all(each.status in (429, 503) and each.retry_after for each in away)
    answered = [each.rows for each in load.answers if each.status == 200]
    assert answered and all(rows == cluster.facts.quick for rows in answered)
    assert incarnations(cluster) == before
    assert rejoins(cluster) == joined
    assert all(each.popen.poll() is None for each in cluster.of.processes)


def waiting_connections(cluster: FaultCluster) -> int:
    """Count the connections of all hosts in which something was sent again without an answer."""
    tables = [Path(f"/proc/{each.popen.pid}/net/tcp") for each in cluster.of.processes]
    lines = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
    return sum(int(fields[6], 16) > 0 for fields in lines)


def rejoins(cluster: FaultCluster) -> int:
    """Count how often executors and schedulers have lost their Ray nodes."""
    processes = (*cluster.of.executors.values(), *cluster.of.schedulers.values())
    return sum(each.log.read_text().count("rejoining the cluster") for each in processes)
