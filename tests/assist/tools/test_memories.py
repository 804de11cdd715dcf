"""Memories of models: their content, the right to write them, and their retrieval."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.cluster_runtime import clustered
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.scripted_chat import calling
from tests.kit.scripted_provider import completion, scripted

MANIFEST = """
    runtime:
      auth: {api-key: {keys: ["writer:rw", "reader"]}}
    datasets:
      - {from: 'memory:store', name: llm_memory, access: read_write}
      - {from: 'memory:rows', name: other, columns: [{name: id, type: bigint}]}
"""


async def call(runtime: Running, name: str, key: str = "writer", **arguments: Any) -> Any:
    answer = await runtime.api.post(f"/v1/tools/{name}", json=arguments, headers={"x-api-key": key})
    return answer.json() if answer.status_code == 200 else (answer.status_code, answer.text)


async def test_memories_come_back_newest_first(tmp_path: Path) -> None:
    async with running(tmp_path, MANIFEST) as runtime:
        runtime.api.headers["x-api-key"] = "writer"
        first = await call(runtime, "store_memory", thoughts=['it\'s "one"', " two ", "two"])
        assert len(first["stored"]) == 2
        await runtime.sql("INSERT INTO llm_memory VALUES ('old', 'x', 'me', '2020-01-01T00:00:00')")
        second = await call(runtime, "memory:store", thoughts=["three"])
        loaded = await call(runtime, "load_memory", "reader")
        assert loaded[0]["value"] == "three"
        assert {row["value"] for row in loaded} == {'it\'s "one"', "two", "three"}
        assert {row["id"] for row in loaded} == {*first["stored"], *second["stored"]}
        assert all(row["created_by"].startswith("key-") and row["created_at"] for row in loaded)
        rows = await runtime.sql("SELECT count(*) AS n FROM llm_memory")
        assert rows.json() == [{"n": 4}]


@pytest.mark.parametrize(
    ("name", "key", "arguments", "status", "words"),
    [
        ("store_memory", "reader", {"thoughts": ["x"]}, 403, "may only read"),
        ("store_memory", "writer", {"thoughts": []}, 400, "thoughts"),
        ("store_memory", "writer", {"thoughts": ["  "]}, 400, "thoughts"),
        ("store_memory", "writer", {"thoughts": "x"}, 400, "thoughts"),
        ("store_memory", "writer", {"thoughts": ["x" * 8193]}, 400, "thoughts"),
        ("store_memory", "writer", {"thoughts": ["x"] * 101}, 400, "thoughts"),
        ("load_memory", "writer", {"last": "soon"}, 400, "not a duration"),
        ("load_memory", "writer", {"last": "1h'; DROP"}, 400, "not a duration"),
    ],
)
async def test_what_cannot_be_kept_is_refused(
    tmp_path: Path, name: str, key: str, arguments: Any, status: int, words: str
) -> None:
    async with running(tmp_path, MANIFEST) as runtime:
        got = await call(runtime, name, key, **arguments)
        assert got[0] == status and words in got[1]


async def test_a_full_store_takes_no_more(tmp_path: Path) -> None:
    async with running(tmp_path, MANIFEST) as runtime:
        runtime.api.headers["x-api-key"] = "writer"
        await runtime.sql(
            "INSERT INTO llm_memory SELECT CAST(value AS TEXT), 'x', 'me', now() "
            "FROM generate_series(1, 100000)"
        )
        status, text = await call(runtime, "store_memory", thoughts=["more"])
        assert status == 400 and "remove old ones with DELETE" in text
        loaded = await call(runtime, "load_memory")
        assert loaded["is_truncated"] and len(loaded["rows"]) == 500


MODELS = """
    datasets:
      - {{from: 'memory:{path}', name: llm_memory, access: read_write,
         columns: [{{name: id, type: text}}]}}
    models:
      - from: openai:gpt-4o
        name: chat
        params: {{endpoint: {url}, openai_api_key: k, max_retries: 0, tools: '{tools}'}}
"""
ASKED = {"model": "chat", "messages": [{"role": "user", "content": "I like tea"}]}


@pytest.mark.parametrize(
    ("tools", "given"),
    [("memory", True), ("auto, memory:store, memory:load", True), ("all", True), ("auto", False)],
)
async def test_a_model_keeps_memories_only_if_told(tmp_path: Path, tools: str, given: bool) -> None:
    async with scripted() as provider:
        thought = json.dumps({"thoughts": ["likes tea"]})
        provider.answers = [calling(("store_memory", thought)), completion("noted")]
        manifest = MODELS.format(url=provider.url, tools=tools, path="store")
        async with running(tmp_path, manifest) as runtime:
            await runtime.api.post("/v1/chat/completions", json=ASKED)
            names = {tool["function"]["name"] for tool in provider.requests[0]["tools"]}
            assert ({"load_memory", "store_memory"} <= names) is given
            assert (await call(runtime, "load_memory") != []) is given


async def test_a_manifest_without_a_store_has_no_such_tools(tmp_path: Path) -> None:
    async with scripted() as provider:
        manifest = MODELS.format(url=provider.url, tools="memory", path="rows")
        async with running(tmp_path, manifest) as runtime:
            answer = await runtime.api.post("/v1/chat/completions", json=ASKED)
            assert "need a dataset `from: memory:store`" in answer.text
            assert (await call(runtime, "store_memory", thoughts=["x"]))[0] == 404


async def test_memories_of_a_cluster_live_on_an_executor(tmp_path: Path) -> None:
    manifest = "datasets: [{from: 'memory:store', name: llm_memory, access: read_write}]\n"
    async with clustered(tmp_path, manifest) as cluster:

        async def stored() -> bool:
            got = await call(cluster.runtime, "store_memory", thoughts=["kept"])
            return isinstance(got, dict)

        await eventually(stored, "the dataset is ready")
        loaded = await call(cluster.runtime, "load_memory", last="10m")
        assert [row["value"] for row in loaded] == ["kept"]
