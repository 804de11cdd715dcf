"""What names models, tools and rerankers: errors if these do not exist."""

import pytest

from caraway_core.errors import ManifestError
from caraway_core.manifest import load
from tests.core.manifest.conftest import Loads, Refuses, Write

MANIFEST = """\
name: x
tools:
  - {{from: 'mcp:npx', name: files}}
  - {{from: sql, name: top, sql: SELECT 1, groups: [reports]}}
functions:
  - {{name: area, signature: {{args: [{{name: r, type: double}}], returns: double}}, body: r * r}}
models:
  - from: openai:gpt-4o
    name: chat
    params:
      tools: {tools}
"""


@pytest.mark.parametrize(
    "tools",
    ["auto", "all", "search_registry", "disabled", "None", "'sql, reports,top'", "read__files",
     "files", "memory", "memory:load", "functions", "area", "document_similarity", "''"],
)  # fmt: skip
def test_tools_that_exist_are_fine(write: Write, tools: str) -> None:
    load(write(MANIFEST.format(tools=tools)), checks_params=True)


@pytest.mark.parametrize("tools", ["nope", "'sql, nope'", "read__nope", "spice_tools"])
def test_a_tool_that_does_not_exist_is_a_problem(write: Write, tools: str) -> None:
    path = write(MANIFEST.format(tools=tools))
    with pytest.raises(ManifestError) as refused:
        load(path, checks_params=True)
    (problem,) = refused.value.problems
    assert (problem.path, problem.line) == ("models[0].params.tools", 11)
    assert "no tool or group of tools '" in problem.message
    # In a running scheduler only that model fails.
    load(path)


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
