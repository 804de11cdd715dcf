"""`GET /v1/models`, and the states of models."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from llmock.scenarios import Fail
from llmock.testing import LLMockServer

from caraway_core import manifest as manifests
from caraway_core.errors import ManifestError
from tests.kit.deadlines import eventually
from tests.kit.models import KEY, llmock, manifest
from tests.kit.runtime import running


@pytest.fixture(scope="module")
def server() -> Iterator[LLMockServer]:
    with llmock() as running:
        yield running


@pytest.fixture(autouse=True)
def fresh(server: LLMockServer) -> None:
    server.state.scenarios.clear()


async def test_models_are_listed_as_the_specification_says(
    tmp_path: Path, server: LLMockServer
) -> None:
    text = manifest(server.base_url()) + (
        "    description: talks\n    metadata: {team: x}\n    datasets: [a, b]\n"
        "  - {from: 'openai:gpt-4o', name: keyless}\n"
    )
    async with running(tmp_path, text) as runtime:
        plain = (await runtime.api.get("/v1/models")).json()
        assert plain["object"] == "list"
        first = plain["data"][0]
        assert first.pop("created") > 0
        assert first == {
            "id": "chat", "object": "model", "owned_by": "openai", "datasets": ["a", "b"]
        }  # fmt: skip
        full = (await runtime.api.get("/v1/models?status=true")).json()["data"]
        assert [entry["status"] for entry in full] == ["ready", "error"]
        assert full[0]["error"] is None and full[0]["error_message"] is None
        assert full[1]["error"] == {"category": "model", "type": "auth", "code": "model.auth"}
        assert "openai_api_key" in full[1]["error_message"]
        answer = await runtime.api.get("/v1/models?status=true&format=csv")
        lines = answer.text.splitlines()
        assert lines[0] == "id,object,owned_by,datasets,status,error,error_message"
        assert lines[1] == 'chat,model,openai,"a,b",ready,,'
        assert lines[2].startswith("keyless,model,openai,,error,model.auth,")
        asked = await runtime.api.get("/v1/models?metadata_fields=team,description,nothing")
        assert asked.json()["data"][0]["metadata"] == {
            "team": "x", "description": "talks", "nothing": None
        }  # fmt: skip
        assert (await runtime.api.get("/v1/models/chat")).json()["status"] == "ready"
        assert (await runtime.api.get("/v1/models/none")).status_code == 404
        assert KEY not in answer.text


async def test_readiness_waits_for_each_model_once(tmp_path: Path, server: LLMockServer) -> None:
    server.state.scenarios.add(Fail(401, times=None))
    async with running(tmp_path, manifest(server.base_url())) as runtime:
        answer = await runtime.api.get("/v1/ready?verbose=true")
        assert answer.status_code == 503
        assert "model chat (error)" in answer.text
        server.state.scenarios.clear()
        state = runtime.services.models.states["chat"]
        state.look.set()

        async def is_ready() -> bool:
            return (await runtime.api.get("/v1/ready")).status_code == 200

        await eventually(is_ready, "ready")
        server.state.scenarios.add(Fail(401, times=None))
        state.look.set()

        async def has_failed() -> bool:
            return state.status == "error"

        await eventually(has_failed, "the model failed")
        assert (await runtime.api.get("/v1/ready")).status_code == 200


async def test_a_reload_replaces_only_what_changed(tmp_path: Path, server: LLMockServer) -> None:
    other = "  - {from: 'openai:a', name: other, params: {endpoint: 'URL'}}\n"
    text = manifest(server.base_url()) + other.replace("URL", server.base_url())
    async with running(tmp_path, text) as runtime:
        models = runtime.services.models
        before = dict(models.states)
        path = tmp_path / "caraway.yaml"
        path.write_text(path.read_text().replace("'openai:a'", "'openai:b'"))
        loaded = manifests.load(path)
        await models.apply(loaded, manifests.build_resolver(loaded, {}))
        assert models.states["chat"] is before["chat"]
        assert models.states["other"] is not before["other"]
        await models.wait_settled()
        assert models.states["other"].status == "ready"
        path.write_text("name: test\n")
        loaded = manifests.load(path)
        await models.apply(loaded, manifests.build_resolver(loaded, {}))
        assert (await runtime.api.get("/v1/models")).json()["data"] == []


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("- {from: 'opnai:x', name: a}", "4: models[0].from: no model provider 'opnai'; did you"),
        ("- {from: 'openai:x', name: a, prams: {}}", "4: models[0].prams: unknown key 'prams'"),
        ("- {from: 'openai:x', name: 'a b'}", "4: models[0].name: 'a b' is not a name"),
        ("- {from: 'openai:x', name: a}\n- {from: 'openai:y', name: a}", "5: models[1].name: the"),
        ("- {from: 'openai:x', name: a, params: {openai_api_kee: k}}",
         "4: models[0].params.openai_api_kee: no openai param 'openai_api_kee'; did you mean"),
        ("- {from: 'openai:x', name: a, resources: {cpu: 0}}", "4: models[0].resources.cpu: must"),
        ("- {from: 'openai:x', name: a, datasets: ['a.b.c.d']}",
         "4: models[0].datasets: 'a.b.c.d' is"),
    ],
)  # fmt: skip
def test_a_wrong_model_is_refused_with_its_line(tmp_path: Path, lines: str, words: str) -> None:
    path = tmp_path / "caraway.yaml"
    path.write_text("version: v1\nname: test\nmodels:\n" + textwrap.indent(lines, "  ") + "\n")
    with pytest.raises(ManifestError) as caught:
        manifests.load(path, checks_params=True)
    assert words in str(caught.value)
