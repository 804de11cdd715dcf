"""The section `rerankers`."""

from tests.core.manifest.conftest import Loads, Refuses


def test_each_kind_of_reranker(loads: Loads) -> None:
    manifest = loads(
        """
models: [{from: "openai:m", name: chat}]
rerankers:
  - {from: "file:models/cross", name: a, params: {max_tokens: 128}, files: [{path: x.onnx}]}
  - {from: "huggingface:huggingface.co/cross-encoder/m", name: b, description: d}
  - {from: "cohere:rerank-v3.5", name: c, params: {cohere_api_key: "${secrets:KEY}"}}
  - {from: "model:chat", name: d}
  - {from: "builtin:lexical", name: e}
"""
    )
    found = {each.name: each for each in manifest.rerankers}
    assert (found["a"].provider, found["a"].model) == ("file", "models/cross")
    assert found["a"].params == {"max_tokens": "128"} and found["a"].files == ("x.onnx",)
    assert found["b"].model == "huggingface.co/cross-encoder/m"
    assert "secrets" not in repr(found["c"])
    assert (found["d"].provider, found["d"].model) == ("model", "chat")


def test_what_is_refused(refuses: Refuses) -> None:
    lines = refuses(
        """
version: v1
name: app
models: [{from: "openai:m", name: chat}]
rerankers:
  - {from: "model:chta", name: a}
  - {from: "coher:x", name: b}
  - {from: "file:x", name: "c;"}
  - {from: "file:x", name: d}
  - {from: "file:y", name: d}
  - {name: f}
"""
    )
    text = "\n".join(lines)
    assert "rerankers[0].from: no model 'chta'; did you mean 'chat'?" in text
    assert "rerankers[1].from: no reranker provider 'coher'; did you mean 'cohere'?" in text
    assert "rerankers[2].name: 'c;' is not a model name" in text
    assert "rerankers[4].name: the name 'd' is taken" in text
    assert "rerankers[5].from" in text and len(lines) == 5
