"""The built-in model of static word vectors."""

import numpy as np
import pytest

from caraway_core.errors import ModelError, ModelInputError
from caraway_core.protocols.embedding import Embedder, EmbedderSpec


@pytest.fixture(scope="module")
def wordllama() -> Embedder:
    return EmbedderSpec("w", "builtin", "wordllama").build()


def matrix(embedder: Embedder, texts: list[str], dimensions: int | None = None) -> np.ndarray:
    return np.array(embedder.embed(texts, dimensions).vectors.to_pylist(), dtype=np.float32)


def test_it_gives_the_vectors_of_its_package(wordllama: Embedder) -> None:
    from pathlib import Path

    import wordllama as package

    texts = ["a cat on a mat", "the price of a share fell", "x"]
    folder = Path(package.__file__).parent
    theirs = package.WordLlama.load(cache_dir=folder, disable_download=True)
    assert np.allclose(matrix(wordllama, texts), theirs.embed(texts, norm=True), atol=1e-6)
    assert wordllama.dimensions == 256


def test_shorter_vectors(wordllama: Embedder) -> None:
    long, short = matrix(wordllama, ["a cat"]), matrix(wordllama, ["a cat"], 64)
    expected = long[:, :64] / np.linalg.norm(long[:, :64])
    assert np.allclose(short, expected, atol=1e-6)
    with pytest.raises(ModelInputError, match="no vectors of 100 dimensions; it has: 64, 128, 256"):
        wordllama.embed(["a"], 100)


def test_texts_without_words_and_wrong_tokens(wordllama: Embedder) -> None:
    assert not matrix(wordllama, [""]).any()
    assert len(wordllama.embed([]).vectors) == 0
    assert wordllama.embed_tokens([[1, 2, 3], []]).token_count == 3
    for wrong in (-1, 32000):
        with pytest.raises(ModelInputError, match="'w' has the tokens 0 to 31999"):
            wordllama.embed_tokens([[wrong]])


def test_other_names_are_unknown() -> None:
    with pytest.raises(ModelError, match="no built-in 'bert'"):
        EmbedderSpec("w", "builtin", "bert").build()
