"""Registers the functions of searches in a context of the engine.

Their names are internal: statements of the runtime use them, and they may change. Constant
arguments reach them once for each row, so constants are few and short.
"""

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
from datafusion import SessionContext, udf

from caraway_core.errors import InvalidQueryError
from caraway_engine.errors import failing

VECTOR_SCORE = "caraway_vector_score"
BEST_VECTOR_SCORE = "caraway_best_vector_score"
BEST_CHUNK = "caraway_best_chunk"
NAMES = (VECTOR_SCORE, BEST_VECTOR_SCORE, BEST_CHUNK)
_VECTOR = pa.list_(pa.float32())
_QUERY = (pa.binary(), pa.string())
Function = Callable[..., pa.Array]


def register(context: SessionContext) -> None:
    """Add the functions to a context."""
    for function in _functions():
        context.register_udf(function)


@functools.cache
def _functions() -> Sequence[Any]:
    return (
        _made(VECTOR_SCORE, "vectors.scores", (_VECTOR, *_QUERY), pa.float64()),
        _made(BEST_VECTOR_SCORE, "vectors.best_scores", (pa.list_(_VECTOR), *_QUERY), pa.float64()),
        _made(BEST_CHUNK, "vectors.best_chunks", (pa.list_(_VECTOR), *_QUERY), pa.int64()),
    )


def _made(name: str, place: str, takes: Sequence[pa.DataType], gives: pa.DataType) -> Any:
    return udf(_safe(place), list(takes), gives, "immutable", name)


def _safe(place: str) -> Function:
    """Return a function that is imported when it is first called: most processes never search."""
    module, _, name = place.rpartition(".")

    def call(*arguments: pa.Array) -> pa.Array:
        function = getattr(import_module(f"caraway_engine.searching.{module}"), name)
        try:
            return function(*arguments)
        except ValueError as exc:
            raise failing.marked(InvalidQueryError(str(exc))) from exc

    return call
