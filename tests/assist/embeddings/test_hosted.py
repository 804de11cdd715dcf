"""Embedding models on the executors of a cluster in this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from caraway_core.ids import ExecutorId
from tests.kit.cluster_runtime import Clustered, clustered
from tests.kit.deadlines import eventually

MANIFEST = """
embeddings:
  - from: builtin:minilm
    name: hosted
    resources: {copies: 2}
  - from: builtin:minilm
    name: here
"""
TEXTS = ["a small cat", "two dogs", *(f"text {n}" for n in range(20))]


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Clustered]:
    async with clustered(folder, MANIFEST) as cluster:
        await copies(cluster, 2)
        yield cluster


async def copies(cluster: Clustered, wanted: int) -> None:
    async def look() -> bool:
        page = (await cluster.runtime.metrics.get("/metrics")).text
        return f'embeddings_model_copies{{model="hosted"}} {wanted}.0' in page

    await eventually(look, f"{wanted} copies are ready")


async def vectors(cluster: Clustered, model: str, texts: list[str]) -> Any:
    body = {"model": model, "input": texts}
    answer = await cluster.runtime.api.post("/v1/embeddings", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"], answer.json()["usage"]


async def test_copies_answer_as_a_model_here_does(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        assert await vectors(cluster, "hosted", TEXTS) == await vectors(cluster, "here", TEXTS)
        tokens: Any = [[1037, 2235, 4937], [1]]
        assert await vectors(cluster, "hosted", tokens) == await vectors(cluster, "here", tokens)
        embeddings = cluster.runtime.services.embeddings
        found = await embeddings.vectors("hosted", TEXTS[:2])
        assert found.equals(await embeddings.vectors("here", TEXTS[:2]))
        state = embeddings.states["hosted"]
        assert state.copies is not None and len(state.copies.views()) == 2


async def test_requests_go_on_when_an_executor_is_lost(tmp_path: Path) -> None:
    async with served(tmp_path) as cluster:
        wanted = await vectors(cluster, "here", TEXTS)
        await cluster.fleet.lose(ExecutorId("e2"))
        assert await vectors(cluster, "hosted", TEXTS) == wanted
        await copies(cluster, 1)
