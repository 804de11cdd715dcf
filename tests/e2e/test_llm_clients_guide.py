"""Runs the code of the guide to libraries for language models, in environments of their own."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.json_provider import ProviderAnswer, ProviderRequest, json_provider
from tests.kit.processes import child
from tests.kit.scripted_provider import chunk, completion

pytestmark = pytest.mark.full
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "llm-clients.md"
PLACE = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients")).resolve()
MANIFEST = """
version: v1
kind: Caraway
name: clients
runtime: {auth: {api-key: {keys: ['reader']}}}
datasets:
  - from: memory:orders
    name: orders
    params: {data: '[{"id": 1, "region": "north"}, {"id": 2, "region": "south"}]'}
embeddings: [{from: 'builtin:minilm', name: vectors}]
models:
  - from: openai:m
    name: assistant
    params: {openai_api_key: sk-a-secret, endpoint: '%s'}
"""
REGION = '{"name": "north", "orders": 3}'


def blocks(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(), flags=re.M | re.S)
    assert found
    return "\n".join(found)


def answer(request: ProviderRequest) -> ProviderAnswer:
    """Answer with a call if there is a tool for it, otherwise with a greeting."""
    if request.method == "GET":
        return ProviderAnswer({"data": []})
    if request.body.get("stream"):
        frames = [chunk("hel"), chunk("lo"), chunk(finish="stop")]
        lines = [b"data: " + _json(frame) + b"\n\n" for frame in frames]
        body = b"".join(lines) + b"data: [DONE]\n\n"
        return ProviderAnswer(body, headers={"content-type": "text/event-stream"})
    names = [tool["function"]["name"] for tool in request.body.get("tools", ())]
    if "Region" not in names:
        return ProviderAnswer(completion())
    called = {"name": "Region", "arguments": REGION}
    calls = [{"id": "1", "type": "function", "function": called}]
    return ProviderAnswer(completion(None, tool_calls=calls))


def _json(frame: object) -> bytes:
    return json.dumps(frame).encode()


@contextmanager
def served(folder: Path) -> Iterator[dict[str, str]]:
    """Run the manifest of the guide; yield the variables that its code reads."""
    with json_provider(answer) as upstream:
        (folder / "caraway.yaml").write_text(MANIFEST % upstream.url)
        with child(folder, folder) as runtime:
            yield {
                "CARAWAY_HTTP_URL": f"http://{runtime.addresses['http']}",
                "CARAWAY_FLIGHT_URL": f"grpc://{runtime.addresses['flight']}",
                "CARAWAY_API_KEY": "reader",
            }


def ran(command: list[str | Path], environ: dict[str, str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, env={**os.environ, **environ}
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_the_python_of_the_guide_runs(tmp_path: Path) -> None:
    python = PLACE / "python" / "bin" / "python"
    if not python.exists():
        pytest.skip("NOT TESTED: the libraries are not installed; run `make test-clients`")
    script = tmp_path / "guide.py"
    script.write_text(blocks("python"))
    with served(tmp_path) as environ:
        ran([python, script], environ)


def test_the_javascript_of_the_guide_runs(tmp_path: Path) -> None:
    if not (PLACE / "node" / "node_modules" / "ai").exists():
        pytest.skip("NOT TESTED: no node, or no packages; run `make test-clients` where npm is")
    script = PLACE / "node" / "guide.mjs"
    script.write_text(blocks("javascript"))
    with served(tmp_path) as environ:
        assert ran(["node", script], environ).splitlines() == ["hello", "hel", "lo"]
