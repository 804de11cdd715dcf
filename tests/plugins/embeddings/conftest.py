"""A local provider of embeddings, which is called without waits."""

from collections.abc import Iterator

import pytest

from caraway_core.concurrency.backoff import Delays
from caraway_plugins.embeddings import remote
from tests.kit.json_provider import JsonProvider, json_provider, openai_embeddings


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonProvider]:
    monkeypatch.setattr(remote.RemoteEmbedder.__init__, "__defaults__", (Delays(0.0, 0.0),))
    with json_provider(openai_embeddings) as provider:
        yield provider
