"""What the pods run, run: the containers of the rendered chart as processes of this machine."""

import base64
import json
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from examples import make_data
from tests.kit import helm, pods
from tests.kit.deadlines import until
from tests.kit.processes import command_lines
from tests.kit.ray_cluster import assert_nothing_left

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
START_S = 240
QUERY = "SELECT region, year, orders FROM revenue_by_region ORDER BY region, year"


@pytest.fixture
def folder() -> Iterator[Path]:
    # The path of a Unix socket may have 107 characters, which pytest's folders can exceed.
    with tempfile.TemporaryDirectory(prefix="pods-") as made:
        yield Path(made)


def get(url: str) -> httpx.Response | None:
    try:
        return httpx.get(url, timeout=10)
    except httpx.TransportError:
        return None


def is_ok(url: str) -> bool:
    answer = get(url)
    return answer is not None and answer.status_code == 200


def test_rendered_pods_become_a_cluster_that_answers(folder: Path) -> None:
    sample = folder / "sample"
    make_data.write(sample, force=True)
    mark = uuid.uuid4().hex
    # As laptops run it, with less memory than a real executor would have.
    small = {"resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}}}
    values = {
        "operator": {"enabled": False},
        "cluster": {"spec": {"executor": {**small, "drainTimeoutSeconds": 20}, "scheduler": small}},
    }
    with pods.pods(folder, helm.render(values), "127.83", sample, mark) as cluster:
        for component in ("state", "head", "scheduler"):
            cluster.start(component)
        for ordinal in (0, 1):
            cluster.start("executor", ordinal)
        api = f"http://{cluster.address('caraway-scheduler-0')}:8090"
        metrics = f"http://{cluster.address('caraway-scheduler-0')}:9090"
        executor = f"http://{cluster.address('caraway-executor-0')}:9090"

        def come_up() -> bool:
            for name, process in cluster.processes.items():
                assert process.poll() is None, f"{name} ended:\n{cluster.log(name)}"
            return is_ok(f"{metrics}/v1/ready?min_ready_executors=2")

        until(come_up, "two executors are ready", START_S)
        secret = helm.the(cluster.found, "Secret", "caraway-state")
        password = base64.b64decode(secret["data"]["password"]).decode()
        assert len(password) > 16
        assert not [line for line in command_lines() if password in line]

        # What the probes ask.
        assert is_ok(f"{metrics}/health")
        assert is_ok(f"{executor}/health")
        assert is_ok(f"{executor}/v1/ready")

        answer = httpx.post(f"{api}/v1/sql", content=QUERY, timeout=60)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()) == 20
        # The answer of a job goes to the store beside the Redis, and comes back from it.
        job = httpx.post(f"{api}/v1/queries", json={"sql": QUERY}, timeout=60).json()
        until(
            lambda: httpx.get(f"{api}/v1/queries/{job['query_id']}/status", timeout=30).json()[
                "status"
            ] == "SUCCEEDED",
            "the job has succeeded", 60,
        )  # fmt: skip
        result = httpx.get(f"{api}/v1/queries/{job['query_id']}", timeout=60).json()
        assert result["manifest"]["total_row_count"] == 20, json.dumps(result)[:500]
        stored = list((folder / "caraway-state-0" / "store").rglob("*.arrow"))
        assert stored, "the store holds no chunk"

        codes = cluster.stop()
    assert {name: code for name, code in codes.items() if code != 0} == {}
    assert_nothing_left(mark)
