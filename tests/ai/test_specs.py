"""The description of a model crosses to executors, names its files, and shows no secret."""

import pickle
from pathlib import Path

import pytest

from caraway_ai.specs import ModelSpec
from caraway_core.errors import ModelError
from caraway_core.manifest.models import ModelFile

GGUF, TEMPLATE = ModelFile("a.gguf", type="weights"), ModelFile("t.jinja", type="chat_template")
TOKENIZER = ModelFile("tokenizer.json", type="tokenizer")
UNTYPED = ModelFile("b.gguf")


def spec(*files: ModelFile, provider: str = "file", model: str = "m.gguf") -> ModelSpec:
    return ModelSpec("m", provider, model, {"openai_api_key": "hunter2"}, files)


def test_it_crosses_without_showing_its_params() -> None:
    found = pickle.loads(pickle.dumps(spec(GGUF)))
    assert found == spec(GGUF) and found.params["openai_api_key"] == "hunter2"
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("files", "weights"),
    [((), None), ((TEMPLATE, TOKENIZER), None), ((TEMPLATE, GGUF, UNTYPED), "a.gguf"),
     ((UNTYPED, GGUF), "b.gguf"), ((ModelFile("x.safetensors", type="weights"),), None),
     ((ModelFile("x.gguf", type="config"),), None)],
)  # fmt: skip
def test_weights(files: tuple[ModelFile, ...], weights: str | None) -> None:
    assert spec(*files).weights == weights


@pytest.mark.parametrize(
    ("found", "files"),
    [
        (spec(), ("m.gguf",)), (spec(GGUF, TEMPLATE), ("a.gguf", "t.jinja")),
        (spec(TEMPLATE), ("m.gguf", "t.jinja")),
        # Weights of a hub are downloaded where they are needed.
        (spec(GGUF, TEMPLATE, provider="huggingface", model="o/m"), ("t.jinja",)),
        (spec(provider="openai", model="gpt"), ()),
    ],
)  # fmt: skip
def test_files_that_executors_need(found: ModelSpec, files: tuple[str, ...]) -> None:
    assert found.own_files == files


def test_files_that_are_elsewhere() -> None:
    places = {"m.gguf": Path("/c/1"), "t.jinja": Path("/c/2"), "o/m": Path("/c/3")}
    moved = spec(TEMPLATE, TOKENIZER).with_files(places)
    assert moved.model == "/c/1"
    assert [file.path for file in moved.files] == ["/c/2", "tokenizer.json"]
    assert [file.type for file in moved.files] == ["chat_template", "tokenizer"]
    # Of a hub the model is a name, and no path.
    assert spec(provider="huggingface", model="o/m").with_files(places).model == "o/m"
    assert spec(GGUF).with_files({}) == spec(GGUF)


@pytest.mark.parametrize("provider", ["", "nobody", "opena", "../x", "x" * 5_000])
def test_a_provider_that_is_not_known(provider: str) -> None:
    with pytest.raises(ModelError, match="model 'm': no ") as caught:
        spec(provider=provider).build()
    assert caught.value.type == "invalid"
