"""Searches of a real cluster while its documents are embedded again and an executor is killed."""

import os
import random
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, Served, in_thread
from tests.kit.processes import child
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
ROWS = 400
MANIFEST = """\
version: v1
kind: Caraway
name: searched
runtime:
  caching: {search_results: {enabled: false}, sql_results: {enabled: false}}
  query:
    distribution: {small_table_size: 1KiB, broadcast_size: 1KiB, gather_size: 1KiB}
datasets:
  - from: file:docs.parquet
    name: docs
    columns:
      - name: body
        embeddings: [{from: 'builtin:minilm'}]
        full_text_search: {enabled: true}
    acceleration: {enabled: true, primary_key: id, partition_by: ['bucket(8, id)']}
"""
WORDS = ("bread butter salt water cluster executor key piano rotate scale market share price "
         "garden kitten wool ball sofa").split()  # fmt: skip
ASKED: Sequence[Mapping[str, Any]] = (
    {"text": "warm bread and butter", "limit": 20},
    {"text": "young cats", "limit": 20},
    {"text": "stock exchange", "where": "id % 3 = 1", "limit": 20},
    {"text": "play an instrument", "keywords": ["piano", "key water"], "limit": 20},
)


def write(folder: Path, version: int) -> None:
    """Write documents, all of them with other texts in each version."""
    of = random.Random(version)
    bodies = [" ".join(of.choices(WORDS, k=of.randint(2, 12))) for _ in range(ROWS)]
    table = pa.table({"id": range(ROWS), "v": [version] * ROWS, "body": bodies})
    parquet.write_table(table, folder / "docs.draft")
    (folder / "docs.draft").rename(folder / "docs.parquet")


def search(url: str, asked: Mapping[str, Any]) -> Any:
    body = {**asked, "datasets": ["docs"], "additional_columns": ["v"]}
    answer = httpx.post(f"{url}/v1/search", json=body, timeout=120)
    assert answer.status_code == 200, answer.text
    return answer.json()["results"]


@contextmanager
def searching(url: str) -> Iterator[list[Any]]:
    """Search again and again while the block runs."""
    answers: list[Any] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            for asked in ASKED:
                answers.append(search(url, asked))

    asking = [in_thread(ask) for _ in range(2)]
    try:
        yield answers
    finally:
        stop.set()
        for each in asking:
            each.result(2 * BOUND_S)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    folder = tmp_path_factory.mktemp("s")
    write(folder, 1)
    (folder / "caraway.yaml").write_text(MANIFEST)
    with ray_cluster(folder, 2) as of:
        yield of


def test_an_executor_killed_while_documents_are_embedded(
    cluster: RayCluster, tmp_path: Path
) -> None:
    process = cluster.begin_scheduler("s1", cluster.folder / "caraway.yaml").wait_up()
    url = f"http://{process.facts['http']}"
    served = Served(url)
    served.until_ready(2)

    def standing() -> Any:
        return httpx.get(f"{url}/v1/datasets/docs/acceleration", timeout=60).json()

    def number() -> int:
        return int(standing().get("version", {}).get("number", 0))

    until(lambda: number() >= 1, "the first version is read", BOUND_S)
    first = number()
    write(cluster.folder, 2)
    actor = cluster.actor_pid("e2")
    refresh = f"{url}/v1/datasets/docs/acceleration/refresh"
    with searching(url) as answers:
        assert httpx.post(refresh, json={}, timeout=60).status_code == 201
        until(lambda: "refresh" in standing(), "the documents are embedded", BOUND_S)
        count = len(answers)
        until(lambda: len(answers) > count, "searches are answered meanwhile", BOUND_S)
        os.kill(actor, signal.SIGKILL)
        until(lambda: number() > first, "the next version is read", BOUND_S)
        until(lambda: answers[-1][0]["data"]["v"] == 2, "searches read it", BOUND_S)
    for results in answers:
        versions = {each["data"]["v"] for each in results}
        assert len(results) == 20 and len(versions) == 1
    assert {results[0]["data"]["v"] for results in answers} == {1, 2}
    served.until_ready(2)
    found = [search(url, asked) for asked in ASKED]
    (tmp_path / "docs.parquet").write_bytes((cluster.folder / "docs.parquet").read_bytes())
    (tmp_path / "caraway.yaml").write_text(MANIFEST)
    with child(tmp_path, tmp_path / "caraway.yaml") as alone:
        own = str(alone.api.base_url).rstrip("/")
        until(lambda: httpx.get(f"{own}/v1/ready").status_code == 200, "it is ready", BOUND_S)
        assert [search(own, asked) for asked in ASKED] == found
