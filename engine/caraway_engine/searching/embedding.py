"""The SQL function `embed`: the vectors of texts, by a model of the manifest."""

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

EMBED = "embed"
EMBED_ARRAY = "embed_array"
NAMES = (EMBED, EMBED_ARRAY)
_VECTOR = pa.list_(pa.float32())
_MOST_TEXTS = 256
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

    def _embedded(self, model: str | None, texts: pa.StringArray) -> pa.ListArray:
        if model is None:
            return pa.nulls(len(texts), _VECTOR)
        encoded = texts.dictionary_encode()
        different: Sequence[str | None] = encoded.dictionary.to_pylist()
        filled = [index for index, text in enumerate(different) if text and not text.isspace()]
        vectors = self._vectors(model, [str(different[index]) for index in filled])
        places: list[int | None] = [None] * len(different)
        for place, index in enumerate(filled):
            places[index] = place
        rows = pa.array(places, pa.int64()).take(encoded.indices)
        return vectors.take(rows).cast(_VECTOR)

    def _vectors(self, model: str, texts: Sequence[str]) -> pa.Array:
        if self._models is None:
            raise ExecutionError("a process that only plans has no embedding models")
        parts = [pa.nulls(0, _VECTOR)]
        for first in range(0, len(texts), _MOST_TEXTS):
            part = _asked(self._models, model, texts[first : first + _MOST_TEXTS])
            parts.append(part.cast(_VECTOR))
        return pa.concat_arrays(parts)


def _asked(models: TextVectors, model: str, texts: Sequence[str]) -> pa.Array:
    try:
        return models.vectors(model, texts)
    except (NotFoundError, ModelInputError) as exc:
        raise InvalidQueryError(exc.message) from exc
    except ModelAwayError as exc:
        raise ModelNotReadyError(exc.message, exc.retry_after_s) from exc
    except ModelError as exc:
        raise ExecutionError(exc.message) from exc
