"""The SQL function `embed`: the vectors of texts, by a model of the manifest."""

import itertools
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext, udf

from caraway_core.errors import (
    ExecutionError,
    InvalidQueryError,
    ModelAwayError,
    ModelError,
    ModelInputError,
    ModelNotReadyError,
    NotFoundError,
    QueryError,
)
from caraway_core.protocols.embedding import TextVectors
from caraway_engine.errors import failing
from caraway_search.cutting import TextCutter

EMBED = "embed"
EMBED_ARRAY = "embed_array"
STORED_VECTOR = "caraway_stored_vector"
STORED_CHUNKS = "caraway_stored_chunks"
CHUNK_OFFSETS = "caraway_chunk_offsets"
CALLING = (EMBED, EMBED_ARRAY, STORED_VECTOR, STORED_CHUNKS)
"""The functions that call models."""
NAMES = (*CALLING, CHUNK_OFFSETS)
_SIZES = [pa.int64(), pa.int64(), pa.bool_()]
_VECTOR = pa.list_(pa.float32())
_OFFSET = pa.list_(pa.int32())
_MOST_TEXTS = 128
"""Of one call of a model, so that the texts of a large batch are not held twice."""


def register(context: SessionContext, models: TextVectors | None) -> None:
    """Add the functions to a context; without `models` it only plans them."""
    calls = _Calls(models)
    # Volatile: planning would call the model otherwise, in the process that only plans.
    context.register_udf(udf(calls.embed, [pa.string(), pa.string()], _VECTOR, "volatile", EMBED))
    context.register_udf(
        udf(
            calls.embed_array,
            [pa.list_(pa.string()), pa.string()],
            pa.list_(_VECTOR),
            "volatile",
            EMBED_ARRAY,
        )
    )
    text = [pa.string(), pa.string(), pa.string()]
    context.register_udf(udf(calls.stored_vector, text, _VECTOR, "volatile", STORED_VECTOR))
    context.register_udf(
        udf(calls.stored_chunks, [*text, *_SIZES], pa.list_(_VECTOR), "volatile", STORED_CHUNKS)
    )
    context.register_udf(
        udf(_offsets, [pa.string(), *_SIZES], pa.list_(_OFFSET), "immutable", CHUNK_OFFSETS)
    )


class _Calls:
    """The functions of one session."""

    def __init__(self, models: TextVectors | None) -> None:
        self._models = models

    def embed(self, texts: pa.StringArray, models: pa.StringArray) -> pa.ListArray:
        """Return the vector of each text; NULL for NULL and for texts of blanks."""
        try:
            return self._by_model(texts, models)
        except QueryError as exc:
            raise failing.marked(exc) from exc

    def stored_vector(
        self, texts: pa.StringArray, models: pa.StringArray, marks: pa.StringArray
    ) -> pa.ListArray:
        """Return the vector of each text, by the model that has a mark."""
        if not len(texts):
            return pa.nulls(0, _VECTOR)
        try:
            return self._embedded(models[0].as_py(), texts, marks[0].as_py())
        except QueryError as exc:
            raise failing.marked(exc) from exc

    def stored_chunks(
        self,
        texts: pa.StringArray,
        models: pa.StringArray,
        marks: pa.StringArray,
        *sizes: pa.Array,
    ) -> pa.ListArray:
        """Return the vectors of the chunks of each text."""
        if not len(texts):
            return pa.nulls(0, pa.list_(_VECTOR))
        cutter = _cutter(*sizes)
        counts, chunks = [], []
        for text in texts.to_pylist():
            parts = cutter.parts(text or "")
            counts.append(len(parts))
            chunks += [text[part.start : part.end] for part in parts]
        inner = self.stored_vector(
            pa.array(chunks, pa.string()),
            _repeated(models[0], len(chunks)),
            _repeated(marks[0], len(chunks)),
        )
        return pa.ListArray.from_arrays(_ends(counts), inner, mask=texts.is_null())

    def embed_array(self, lists: pa.ListArray, models: pa.StringArray) -> pa.ListArray:
        """Return the vectors of the texts of each list."""
        inner = lists.flatten()
        counts = lists.value_lengths().fill_null(0)
        parents = pa.array(
            [index for index, count in enumerate(counts.to_pylist()) for _ in range(count)],
            pa.int64(),
        )
        vectors = self.embed(inner, models.take(parents))
        offsets = pa.concat_arrays(
            [pa.array([0], pa.int32()), pc.cumulative_sum(counts).cast(pa.int32())]
        )
        return pa.ListArray.from_arrays(offsets, vectors, mask=lists.is_null())

    def _by_model(self, texts: pa.StringArray, models: pa.StringArray) -> pa.ListArray:
        names = pc.unique(models).to_pylist()
        if len(names) == 1:
            return self._embedded(names[0], texts)
        found: list[Any] = [None] * len(texts)
        for name in names:
            chosen = pc.indices_nonzero(pc.equal(models, name)) if name is not None else ()
            rows = self._embedded(name, texts.take(chosen)) if len(chosen) else []
            for index, row in zip(chosen, rows, strict=True):
                found[index.as_py()] = row.as_py()
        return pa.array(found, _VECTOR)

    def _embedded(self, model: str | None, texts: pa.StringArray, mark: str = "") -> pa.ListArray:
        if model is None:
            return pa.nulls(len(texts), _VECTOR)
        encoded = texts.dictionary_encode()
        different: Sequence[str | None] = encoded.dictionary.to_pylist()
        filled = [index for index, text in enumerate(different) if text and not text.isspace()]
        vectors = self._vectors(model, [str(different[index]) for index in filled], mark)
        places: list[int | None] = [None] * len(different)
        for place, index in enumerate(filled):
            places[index] = place
        rows = pa.array(places, pa.int64()).take(encoded.indices)
        return vectors.take(rows).cast(_VECTOR)

    def _vectors(self, model: str, texts: Sequence[str], mark: str) -> pa.Array:
        if self._models is None:
            raise ExecutionError("a process that only plans has no embedding models")
        parts = [pa.nulls(0, _VECTOR)]
        for first in range(0, len(texts), _MOST_TEXTS):
            part = _asked(self._models, model, texts[first : first + _MOST_TEXTS], mark)
            parts.append(part.cast(_VECTOR))
        return pa.concat_arrays(parts)


def _offsets(texts: pa.StringArray, *sizes: pa.Array) -> pa.ListArray:
    """Return where the chunks of each text begin and end, in characters."""
    if not len(texts):
        return pa.nulls(0, pa.list_(_OFFSET))
    cutter = _cutter(*sizes)
    rows = [
        None if text is None else [[part.start, part.end] for part in cutter.parts(text)]
        for text in texts.to_pylist()
    ]
    return pa.array(rows, pa.list_(_OFFSET))


def _cutter(targets: pa.Array, overlaps: pa.Array, trims: pa.Array) -> TextCutter:
    return TextCutter(targets[0].as_py(), overlaps[0].as_py(), trims[0].as_py())


def _repeated(value: pa.Scalar, count: int) -> pa.Array:
    return pa.repeat(value, count)


def _ends(counts: Sequence[int]) -> pa.Array:
    return pa.array([0, *itertools.accumulate(counts)], pa.int32())


def _asked(models: TextVectors, model: str, texts: Sequence[str], mark: str) -> pa.Array:
    try:
        return models.vectors(model, texts, mark)
    except (NotFoundError, ModelInputError) as exc:
        raise InvalidQueryError(exc.message) from exc
    except ModelAwayError as exc:
        raise ModelNotReadyError(exc.message, exc.retry_after_s) from exc
    except ModelError as exc:
        raise ExecutionError(exc.message) from exc
