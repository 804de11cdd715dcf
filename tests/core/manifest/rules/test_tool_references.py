"""The tools that models name exist."""

import pytest

from caraway_core.errors import ManifestError
from caraway_core.manifest import load
from tests.core.manifest.conftest import Write

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
