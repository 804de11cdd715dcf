"""The rerankers of a manifest: which are kept, replaced and closed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from caraway_assist.search.rerankers import RerankerModels
from caraway_core.errors import InvalidQueryError, ModelAwayError
from caraway_core.loading import registry
from caraway_core.manifest import DeclaredReranker, SecretResolver
from caraway_core.protocols.reranking import RerankerSpec


class _Loaded:
    def __init__(self, spec: RerankerSpec) -> None:
        self.name = spec.name
        self.is_closed = False

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [float(len(text)) for text in texts]

    def close(self) -> None:
        self.is_closed = True


def _manifest(**models: str) -> Any:
    declared = tuple(
        DeclaredReranker(name, "file", model, Path("/nowhere")) for name, model in models.items()
    )
    return type("Sections", (), {"rerankers": declared})()


async def test_rerankers_follow_the_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(registry.RERANKERS), "load", lambda _self, _name: _Loaded)
    rerankers = RerankerModels(lambda: _Loaded(RerankerSpec("default", "file", "")))
    with pytest.raises(InvalidQueryError, match="no reranker 'a'; the manifest has no `rerank"):
        await rerankers.scores("a", "q", ["x"])
    assert await rerankers.scores(None, "q", ["xx"]) == [2.0]
    secrets = SecretResolver({})
    rerankers.apply(_manifest(a="one", b="one"), secrets)
    with pytest.raises(ModelAwayError, match="'a' is still loading"):
        await rerankers.scores("a", "q", ["x"])
    await rerankers.wait_settled()
    assert await rerankers.scores("a", "q", ["x", ""]) == [1.0, 0.0]
    before = {name: state.loaded for name, state in rerankers.states.items()}
    rerankers.apply(_manifest(a="one", b="two"), secrets)
    await rerankers.wait_settled()
    assert rerankers.states["a"].loaded is before["a"]
    assert rerankers.states["b"].loaded is not before["b"]
    rerankers.apply(_manifest(a="one"), secrets)
    with pytest.raises(InvalidQueryError, match="no reranker 'b'; known: a"):
        await rerankers.scores("b", "q", ["x"])
    await rerankers.aclose()
    assert all(isinstance(each, _Loaded) and each.is_closed for each in before.values())
