"""Runtimes that embed rows with a provider of the test."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_plugins.embeddings import remote
from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.json_provider import (
    JsonProvider,
    json_provider,
    openai_embeddings,
)
from tests.kit.runtime import Running, running

ROWS = "id,body\n1,a\n2,bbb\n3,\n4,a\n"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonProvider]:
    monkeypatch.setattr(remote.RemoteEmbedder.__init__, "__defaults__", (Delays(0.0, 0.0),))
    with json_provider(openai_embeddings) as provider:
        yield provider


def manifest(provider: JsonProvider, *datasets: str, model: str = "x") -> str:
    params = f"params: {{endpoint: '{provider.url}'}}"
    models = f"embeddings: [{{from: 'openai:{model}', name: m, {params}}}]"
    return "\n".join((models, "datasets:", *datasets))


def dataset(name: str, *keys: str, more: str = "", source: str = "file:a.csv") -> str:
    column = f"columns: [{{name: body, embeddings: [{{from: m{more}}}]}}]"
    lines = (f"  - from: '{source}'", *(f"    {key}" for key in (f"name: {name}", column, *keys)))
    return "\n".join(lines)


def texts(provider: JsonProvider) -> list[str]:
    """Return the texts that the provider received since the last call, sorted."""
    asked = [text for each in provider.requests for text in each.body["input"]]
    provider.requests.clear()
    return sorted(text for text in asked if text != "dimensions")


async def rows(runtime: Running, sql: str) -> Any:
    """Wait until a dataset is loaded, and return the rows of a statement."""

    async def look() -> Any:
        answer = await runtime.sql(sql)
        return answer if answer.status_code != 503 else None

    answer = await eventually(look, "the dataset is loaded")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refreshed(runtime: Running, name: str = "t") -> None:
    """Refresh a dataset and wait for the end of that."""
    kept = runtime.services.accelerations._kept[name]  # type: ignore[index]  # a name
    await kept.refresher.refreshed()


@asynccontextmanager
async def run_with(folder: Path, text: str, executors: int) -> AsyncIterator[Running]:
    """Serve a manifest in one process, or with executors."""
    if executors:
        async with clustered(folder, text, executors=executors) as cluster:
            yield cluster.runtime
    else:
        async with running(folder, text) as runtime:
            yield runtime
