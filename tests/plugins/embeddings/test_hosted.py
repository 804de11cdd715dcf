"""Hosted embedding models answer the calls that cross to them."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from caraway_core.protocols.embedding import EmbeddedTexts, EmbedderSpec
from caraway_plugins.embeddings import hosted, vectors
from caraway_plugins.embeddings.hosted import HostedEmbedderSpec, HostedEmbeddings


class Lengths:
    """Gives each text a vector of its length."""

    identity, dimensions = "lengths", 2

    def __init__(self) -> None:
        self.is_closed = False

    def embed(self, texts: Any, dimensions: int | None) -> EmbeddedTexts:
        rows = [[len(text), dimensions or 0] for text in texts]
        return EmbeddedTexts(vectors.to_arrow(np.asarray(rows, dtype="<f4")), 7)

    embed_tokens = embed

    def close(self) -> None:
        self.is_closed = True


class LengthSpec:
    """Builds the model once it is asked to."""

    def __init__(self) -> None:
        self.built: list[Lengths] = []

    def build(self) -> Lengths:
        self.built.append(Lengths())
        return self.built[-1]


async def answered(model: HostedEmbeddings, call: bytes) -> EmbeddedTexts:
    return hosted.answer_of([part async for part in model.answer(call)])


async def test_texts_and_tokens_get_their_vectors() -> None:
    model = HostedEmbeddings(cast(EmbedderSpec, LengthSpec()))
    assert orjson.loads(await model.load()) == {"identity": "lengths", "dimensions": 2}
    texts = await answered(model, hosted.call_of(["a", "long"], is_tokens=False, dimensions=3))
    assert texts.vectors.to_pylist() == [[1.0, 3.0], [4.0, 3.0]] and texts.token_count == 7
    tokens = await answered(model, hosted.call_of([[1, 2, 3]], is_tokens=True, dimensions=None))
    assert tokens.vectors.to_pylist() == [[3.0, 0.0]]
    await model.aclose()


async def test_a_model_is_built_once_and_closed_at_the_end() -> None:
    spec = LengthSpec()
    model = HostedEmbeddings(cast(EmbedderSpec, spec))
    await model.aclose()
    await model.load()
    await model.load()
    (built,) = spec.built
    assert not built.is_closed
    await model.aclose()
    assert built.is_closed


def test_a_text_that_is_no_unicode_crosses() -> None:
    call = orjson.loads(hosted.call_of(["a\ud800"], is_tokens=False, dimensions=None))
    assert call["items"] == ["a?"]


def test_the_key_of_a_copy_changes_with_its_model() -> None:
    def key(**changed: Any) -> str:
        spec = EmbedderSpec("m", "file", "model", base_dir=Path("/models"), **changed)
        return HostedEmbedderSpec(spec).key

    assert key() == key()
    assert key() != key(params={"pooling": "mean"})
