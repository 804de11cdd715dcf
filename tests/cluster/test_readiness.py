"""The answer of a real scheduler's API, as the supervisor of a cluster reads it."""

from pathlib import Path

import pytest

from caraway_cluster import readiness
from caraway_cluster.readiness import ClusterReadiness
from tests.kit.runtime import running

BROKEN = """
datasets:
  - {from: "file:gone.csv", name: gone}
"""


async def test_components_that_are_not_ready_are_named(tmp_path: Path) -> None:
    async with running(tmp_path, BROKEN) as runtime:
        answer = await runtime.metrics.get("/v1/ready?verbose=true")
    found = readiness.parse(answer.text)
    assert found == ClusterReadiness(True, "dataset gone (error)")
    assert not found.is_loading


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("[+] components ok\n[+] executors: 2/2 ready (100%, registered=2, min=2)\nready",
         ClusterReadiness(True)),
        ("[+] components ok\n[-] executors: 1/2 ready (50%, registered=2, min=2)\nnot ready",
         ClusterReadiness(False)),
        ("[-] components not ready: view v (initializing: waits for dataset 'd')\n[-] executors: 0",
         ClusterReadiness(False, "view v (initializing: waits for dataset 'd')")),
    ],
)  # fmt: skip
def test_executors_and_components_are_separate(lines: str, found: ClusterReadiness) -> None:
    assert readiness.parse(lines) == found
    assert found.is_loading == ("initializing" in lines)


def test_a_scheduler_that_does_not_answer_has_no_readiness() -> None:
    assert readiness.ask("127.0.0.1:1", 2) is None
    assert readiness.ask(None, 2) is None
