"""Texts to search for are embedded once, also when several ask at the same time."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from caraway_assist.search.query_vectors import QueryVectors
from caraway_core.errors import ModelError
from caraway_core.protocols.embedding import EmbeddedTexts
from caraway_serving.spans import Span


class Models:
    """One model that counts its calls and answers when it may."""

    def __init__(self) -> None:
        self.identity = "m1"
        self.texts: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failure: ModelError | None = None

    async def embedder(self, name: str) -> Any:
        if name != "m":
            raise ModelError(f"no model '{name}'", "unavailable")
        return SimpleNamespace(identity=self.identity)

    async def embed(self, name: str, items: Sequence[str], span: Span) -> EmbeddedTexts:
        self.texts += items
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure
        values = pa.array([float(len(items[0])), 2.0], pa.float32())
        return EmbeddedTexts(pa.FixedSizeListArray.from_arrays(values, 2), 1)


async def test_a_text_is_embedded_once() -> None:
    models = Models()
    vectors = QueryVectors(models)
    assert [await vectors.vector_of_text("abc", "m") for _ in range(2)] == [[3.0, 2.0]] * 2
    assert models.texts == ["abc"]


async def test_requests_at_the_same_time_share_a_call_that_outlives_one_of_them() -> None:
    models = Models()
    models.may_answer.clear()
    vectors = QueryVectors(models)
    first, second = (asyncio.ensure_future(vectors.vector_of_text("x", "m")) for _ in range(2))
    while not models.texts:
        await asyncio.sleep(0)
    first.cancel()
    models.may_answer.set()
    assert await second == [1.0, 2.0]
    assert first.cancelled() and models.texts == ["x"]


async def test_a_failure_is_not_kept() -> None:
    models = Models()
    vectors = QueryVectors(models)
    models.failure = ModelError("away", "failed")
    with pytest.raises(ModelError, match="away"):
        await vectors.vector_of_text("x", "m")
    models.failure = None
    assert await vectors.vector_of_text("x", "m") == [1.0, 2.0]
    assert models.texts == ["x", "x"]


async def test_another_model_of_the_same_name_has_vectors_of_its_own() -> None:
    models = Models()
    vectors = QueryVectors(models)
    await vectors.vector_of_text("x", "m")
    models.identity = "m2"
    await vectors.vector_of_text("x", "m")
    assert models.texts == ["x", "x"]


async def test_the_texts_that_were_not_used_for_longest_are_forgotten() -> None:
    models = Models()
    vectors = QueryVectors(models)
    for number in range(256):
        await vectors.vector_of_text(str(number), "m")
    await vectors.vector_of_text("0", "m")
    await vectors.vector_of_text("new", "m")
    models.texts.clear()
    await vectors.vector_of_text("0", "m")
    assert models.texts == []
    await vectors.vector_of_text("1", "m")
    assert models.texts == ["1"]


async def test_a_model_that_is_not_loaded_is_not_asked() -> None:
    models = Models()
    with pytest.raises(ModelError, match="no model 'other'"):
        await QueryVectors(models).vector_of_text("x", "other")
    assert models.texts == []
