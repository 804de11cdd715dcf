"""A real cluster answers while native code keeps all threads of its executors."""

from collections.abc import Iterator

import pytest

from tests.kit.fault_clusters import QUICK, FaultCluster, fault_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
HOSTILE = (
    "SELECT sum(levenshtein(repeat('ab', 30000 + id % 7), repeat('ba', {}))) AS n "
    "FROM lefts WHERE id % 50000 < 40"
)
"""Every file has rows of it, each of which takes seconds without a pause."""
ROUNDS = 10


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with fault_cluster(tmp_path_factory.mktemp("n"), 2, memory="512MiB") as running:
        yield running


def test_small_statements_are_answered_beside_native_code(cluster: FaultCluster) -> None:
    hostile = [cluster.served.begin(HOSTILE.format(30000 + n)) for n in range(2)]
    cluster.served.until_busy("e1", "e2")
    took_s = []
    for _ in range(ROUNDS):
        answer = cluster.served.ask(QUICK)
        assert answer.rows == cluster.facts.quick
        took_s.append(answer.took_s)
    print("small statements took", [round(each, 2) for each in took_s], "s")
    # They passed the others, which still compute.
    assert not any(each.done() for each in hostile)
