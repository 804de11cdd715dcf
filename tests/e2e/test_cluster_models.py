"""A real model on the executors of a real cluster, one of which is killed while requests run."""

import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kit.deadlines import until
from tests.kit.packaged_models import SMOLLM2, fetched
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
PROMPT = "Say something about caraway seeds"
MANIFEST = """
version: v1
kind: Caraway
name: models
models:
  - from: file:{file}
    name: local
    params: {{context_length: 512, threads: 1}}
    resources: {{cpu: 1, copies: 2}}
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A cluster of two with a scheduler."""

    cluster: RayCluster
    url: str

    def copies(self) -> Mapping[str, Any]:
        listing = httpx.get(f"{self.url}/v1/models?status=true", timeout=60).json()
        return {copy["executor"]: copy for copy in listing["data"][0]["copies"] or ()}

    def until_ready(self, *executors: str) -> None:
        def are_ready() -> bool:
            found = self.copies()
            return all(found.get(each, {}).get("status") == "ready" for each in executors)

        until(are_ready, f"copies on {executors} are ready", 300)

    def chat(self, tokens: int) -> httpx.Response:
        body = {"model": "local", "messages": [{"role": "user", "content": PROMPT}],
                "max_tokens": tokens, "temperature": 0}  # fmt: skip
        return httpx.post(f"{self.url}/v1/chat/completions", json=body, timeout=300)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file, folder = fetched(SMOLLM2), tmp_path_factory.mktemp("m")
    manifest = folder / "caraway.yaml"
    manifest.write_text(MANIFEST.format(file=file))
    with ray_cluster(folder, executors=2) as cluster:
        process = cluster.begin_scheduler("s1", manifest).wait_up()
        made = Served(cluster, f"http://{process.facts['http']}")
        made.until_ready("e1", "e2")
        yield made


# It comes first: its cluster uses the port of the one that the other tests share.
def test_an_executor_fetches_weights_that_it_does_not_have(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("sent")
    file = folder / "m.gguf"
    shutil.copyfile(fetched(SMOLLM2), file)
    place = f"runtime: {{scheduler: {{state_location: 'file://{folder}/store'}}}}\n"
    manifest = folder / "caraway.yaml"
    manifest.write_text(MANIFEST.format(file=file) + place)
    with ray_cluster(folder, executors=2) as cluster:
        process = cluster.begin_scheduler("s1", manifest).wait_up()
        made = Served(cluster, f"http://{process.facts['http']}")
        made.until_ready("e1", "e2")
        file.unlink()
        os.kill(cluster.actor_pid("e2"), signal.SIGKILL)
        until(lambda: made.copies().get("e2", {}).get("status") != "ready", "e2 is lost", 60)
        made.until_ready("e1", "e2")
        assert made.chat(4).raise_for_status().json()["usage"]["completion_tokens"] == 4


def test_requests_of_a_killed_executor_are_answered_by_the_other(served: Served) -> None:
    whole = served.chat(8).raise_for_status().json()
    assert whole["usage"]["completion_tokens"] == 8
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(served.chat, 120) for _ in range(4)]
        until(
            lambda: (
                served.copies().get("e2", {}).get("active", 0) >= 2
                and served.copies().get("e1", {}).get("active", 0) >= 2
            ),
            "both copies answer",
            120,
        )
        os.kill(served.cluster.actor_pid("e2"), signal.SIGKILL)
        answers = [call.result() for call in calls]
    # Temperature 0: all say the same, wherever they were answered.
    texts = {answer.raise_for_status().json()["choices"][0]["message"]["content"]
             for answer in answers}  # fmt: skip
    assert len(texts) == 1
    served.until_ready("e1", "e2")


def test_a_stream_of_a_killed_executor_ends_with_an_error(served: Served) -> None:
    served.until_ready("e1", "e2")
    body = {"model": "local", "messages": [{"role": "user", "content": PROMPT}],
            "max_tokens": 400, "stream": True}  # fmt: skip
    with httpx.stream("POST", f"{served.url}/v1/chat/completions", json=body, timeout=300) as got:
        lines = got.iter_lines()
        frames = [next(lines)]
        place = next(name for name, copy in served.copies().items() if copy["active"])
        os.kill(served.cluster.actor_pid(place), signal.SIGKILL)
        frames += list(lines)
    told = [json.loads(line[6:]) for line in frames if line.startswith("data: {")]
    assert "error" in told[-1]
    assert "[DONE]" not in frames[-2:]
    served.until_ready("e1", "e2")


def test_no_log_holds_a_prompt(served: Served) -> None:
    served.chat(4).raise_for_status()
    for log in Path(served.cluster.folder).glob("*.log"):
        assert PROMPT not in log.read_text()
