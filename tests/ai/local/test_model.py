"""Local models: their process, its end, and files that are none."""

import os
import signal
from pathlib import Path

import pytest

from caraway_ai.local.model import LocalModel
from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.manifest import ModelFile
from tests.kit.models import USER
from tests.kit.packaged_models import SMOLLM2, fetched


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
