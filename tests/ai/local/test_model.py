"""Local models: their process, its end, and files that are none."""

import json
import os
import signal
from pathlib import Path

import pytest

from caraway_ai.local.model import LocalModel
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.manifest import ModelFile
from tests.kit.models import USER
from tests.kit.packaged_models import QWEN, SMOLLM2, fetched


def local(path: Path, **params: str) -> LocalModel:
    model = ModelSpec("tiny", "file", str(path), {"threads": "1", **params}).build()
    assert isinstance(model, LocalModel)
    return model


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [(None, "model.not_found", "No such file"), (b"PK", "model.invalid", "no GGUF file")],
)
async def test_a_file_that_is_no_model_is_refused(
    tmp_path: Path, content: bytes | None, code: str, words: str
) -> None:
    if content is not None:
        (tmp_path / "m.gguf").write_bytes(content)
    model = local(tmp_path / "m.gguf")
    with pytest.raises(ModelError, match=words) as caught:
        await model.check()
    assert caught.value.code == code
    await model.aclose()


async def test_a_damaged_file_ends_only_its_process(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + b"x" * 64)
    model = local(tmp_path / "m.gguf")
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        await model.check()
    assert caught.value.code == "model.invalid"
    with pytest.raises(ModelError):
        await model.check()
    # It is not started without end.
    with pytest.raises(ModelAwayError, match="more than once"):
        await model.check()
    await model.aclose()


def test_the_file_may_stand_in_files(tmp_path: Path) -> None:
    files = (ModelFile("w.gguf"),)
    spec = ModelSpec("m", "file", "", files=files, base_dir=tmp_path)
    assert isinstance(spec.build(), LocalModel)
    with pytest.raises(ModelError, match="names no file"):
        ModelSpec("m", "file", "").build()


@pytest.mark.full
async def test_a_real_model_answers_and_survives_the_end_of_its_process() -> None:
    model = local(fetched(SMOLLM2), context_length="512")
    await model.check()
    whole = await model.chat({"messages": USER, "max_tokens": 8, "temperature": 0})
    assert whole["choices"][0]["message"]["content"]
    chunks = [c async for c in model.stream({"messages": USER, "max_tokens": 8})]
    assert chunks[-1]["usage"]["completion_tokens"] == 8
    with pytest.raises(ModelError, match="512") as too_long:
        await model.chat({"messages": [{"role": "user", "content": "hi " * 2000}]})
    assert too_long.value.code == "model.context_length"
    process = model._process
    assert process is not None and process._process is not None
    with pytest.raises(ModelAwayError, match="send the request again"):
        async for _ in model.stream({"messages": USER, "max_tokens": 400}):
            os.kill(process._process.pid, signal.SIGKILL)
    again = await model.chat({"messages": USER, "max_tokens": 4})
    assert again["usage"]["completion_tokens"] == 4
    await model.aclose()


@pytest.mark.full
async def test_a_real_small_model_calls_tools_and_answers_with_data() -> None:
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "get_weather", "description": "Weather of a city", "parameters": city}
    tools = [{"type": "function", "function": function}]
    asked = {
        "messages": [{"role": "user", "content": "What is the weather in Bern?"}],
        "tools": tools, "temperature": 0, "max_tokens": 200,
    }  # fmt: skip
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    model = local(fetched(QWEN), context_length="2048")
    for choice in ("auto", "required"):
        answer = await model.chat({**asked, "tool_choice": choice})
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        assert call["function"]["name"] == "get_weather"
        assert json.loads(call["function"]["arguments"]) == {"city": "Bern"}
    deltas = [c["delta"] async for chunk in model.stream(asked) for c in chunk["choices"]]
    assert [d for d in deltas if d.get("content")] == []
    assert sum(len(d.get("tool_calls") or ()) for d in deltas) == 1
    data = await model.chat(
        {
            "messages": [{"role": "user", "content": "Jason is 25 years old. Extract the user."}],
            "response_format": {
                "type": "json_schema", "json_schema": {"name": "User", "schema": schema},
            },
            "tools": tools, "temperature": 0, "max_tokens": 100,
        }
    )  # fmt: skip
    assert json.loads(data["choices"][0]["message"]["content"]) == {"name": "Jason", "age": 25}
    await model.aclose()
