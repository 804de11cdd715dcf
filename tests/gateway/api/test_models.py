"""`GET /v1/models`, and the states of models."""

import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from llmock.scenarios import Fail
from llmock.testing import LLMockServer

from caraway_core import manifest as manifests
from caraway_core.errors import ManifestError
from caraway_gateway.services import Services
from tests.kit.clocks import VirtualTimes
from tests.kit.deadlines import eventually
from tests.kit.models import KEY, llmock, manifest
from tests.kit.runtime import Running, running
from tests.kit.scripted_provider import ScriptedProvider, completion, scripted

START = datetime(2026, 11, 23, 12, 0, 30, tzinfo=UTC)
MANIFEST = """
    runtime: {{task_history: {{captured_output: truncated}}}}
    datasets:
      - from: memory:log
        name: log
        access: read_write
        columns: [{{name: word, type: text}}]
      - {{from: memory:secret, name: secret, columns: [{{name: word, type: text}}]}}
    models:
      - from: openai:x
        name: a
        datasets: [log]
        params: {{endpoint: {url}, openai_api_key: k, max_retries: 0, tools: sql}}
      - from: openai:x
        name: b
        params: {{endpoint: {url}, openai_api_key: k, max_retries: 0}}
    workers:
      - {{name: both, description: "a, then b", models: [{{from: a, order: 1}}, {{from: b, order: 2}}]}}
      - name: report
        models: [{{from: a}}]
        cron: 0 * * * *
        params: {{prompt: "What is new?"}}
      - {{name: note, sql: "INSERT INTO log VALUES ('noted')", cron: 0 * * * *}}
      - {{name: broken, sql: "SELECT * FROM nowhere", cron: 0 * * * *}}
"""  # noqa: E501


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


@asynccontextmanager
async def started(folder: Path) -> AsyncIterator[tuple[Running, ScriptedProvider, VirtualTimes]]:
    times = VirtualTimes(START)

    def before(services: Services) -> None:
        services.workers.times = times

    async with scripted() as provider:
        provider.answers = [completion("all is well")]
        manifest = MANIFEST.format(url=provider.url)
        async with running(folder, manifest, before=before) as runtime:
            yield runtime, provider, times


async def test_workers_are_listed_as_the_specification_says(tmp_path: Path) -> None:
    async with started(tmp_path) as (runtime, _, _times):
        listed = await runtime.api.get("/v1/workers")
        assert listed.json() == {
            "object": "list",
            "data": [
                {"name": "both", "description": "a, then b", "is_llm": True},
                {"name": "report", "description": "", "is_llm": True},
                {"name": "note", "description": "", "is_llm": False},
                {"name": "broken", "description": "", "is_llm": False},
            ],
        }
        for url, headers in (("?format=csv", {}), ("", {"accept": "text/csv"})):
            answer = await runtime.api.get(f"/v1/workers{url}", headers=headers)
            assert answer.headers["content-type"] == "text/csv; charset=utf-8"
            assert answer.text.splitlines() == [
                "name,description,type,is_llm",
                'both,"a, then b",load_balance,true',
                "report,,load_balance,true",
                "note,,sql,false",
                "broken,,sql,false",
            ]
        wrong = await runtime.api.get("/v1/workers?format=xml")
        assert (wrong.status_code, wrong.json().keys()) == (400, {"error"})


async def test_workers_run_at_their_times(tmp_path: Path) -> None:
    async with started(tmp_path) as (runtime, provider, times):
        hour = datetime(2026, 11, 23, 13, tzinfo=UTC)

        def waits(moment: datetime) -> Callable[[], object]:
            return lambda: len(times.awaited) == 3 and times.awaited[0] == moment

        async def wait(moment: datetime) -> None:
            async def look() -> object:
                return waits(moment)()

            await eventually(look, f"all wait for {moment}")

        await wait(hour)
        times.advance(hour)
        await wait(hour.replace(hour=14))
        assert (await runtime.sql("SELECT * FROM log")).json() == [{"word": "noted"}]
        assert provider.requests[-1]["messages"][-1] == {"role": "user", "content": "What is new?"}
        rows = (await runtime.sql(
            "SELECT labels['worker'] AS name, input, captured_output AS said, "
            "error_message AS error FROM runtime.task_history WHERE task = 'worker' ORDER BY 1"
        )).json()  # fmt: skip
        broken, note, report = rows
        assert (broken["name"], broken["input"]) == ("broken", "SELECT * FROM nowhere")
        assert "nowhere" in broken["error"]
        assert (note["name"], note["error"]) == ("note", None)
        assert (report["input"], report["said"]) == ("What is new?", "all is well")
        metrics = (await runtime.metrics.get("/metrics")).text
        assert 'worker_runs_total{outcome="failed",worker="broken"} 1.0' in metrics
        assert 'worker_runs_total{outcome="succeeded",worker="note"} 1.0' in metrics
        assert 'worker_requests_total{model="a",worker="report"} 1.0' in metrics


async def test_a_worker_writes_sql_over_what_all_its_models_may_read(tmp_path: Path) -> None:
    async with started(tmp_path) as (runtime, provider, _):
        provider.answers = [completion("SELECT count(*) AS n FROM log")]
        asked = {"query": "how many?", "model": "both"}
        answer = await runtime.api.post("/v1/nsql", json=asked)
        assert (answer.status_code, answer.json()) == (200, [{"n": 0}])
        assert "secret" not in str(provider.requests)
        refused = await runtime.api.post("/v1/nsql", json={**asked, "datasets": ["secret"]})
        assert (refused.status_code, "may not read" in refused.text) == (400, True)
        unknown = await runtime.api.post("/v1/nsql", json={**asked, "model": "note"})
        assert (unknown.status_code, "known: a, b, both, report" in unknown.text) == (400, True)
        chat = {"model": "note", "messages": [{"role": "user", "content": "hi"}]}
        assert (await runtime.api.post("/v1/chat/completions", json=chat)).status_code == 404


async def test_no_model_takes_over_after_a_tool_was_called(tmp_path: Path) -> None:
    async with started(tmp_path) as (runtime, provider, _):
        call = {"id": "1", "type": "function",
                "function": {"name": "sql", "arguments": '{"query": "SELECT 1"}'}}  # fmt: skip
        provider.answers = [completion(None, tool_calls=[call]), {"choices": []}, completion("no")]
        chat = {"model": "both", "messages": [{"role": "user", "content": "hi"}]}
        answer = await runtime.api.post("/v1/chat/completions", json=chat)
        assert (answer.status_code, len(provider.requests)) == (500, 2)
        assert "model 'a'" in answer.text
