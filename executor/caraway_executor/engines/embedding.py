"""Calls embedding models for engine processes."""

import functools
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from caraway_core.errors import NotFoundError
from caraway_core.protocols.embedding import TextVectors
from caraway_executor.engines.crossing import read, written
from caraway_executor.engines.messages import VectorsWanted

_EMBEDDING_THREADS = 4


@functools.cache
def threads() -> ThreadPoolExecutor:
    """Return threads of their own: calls of models take long, and others must not wait for them."""
    return ThreadPoolExecutor(_EMBEDDING_THREADS, "embedding for engines")


def embedded(
    models: TextVectors | None, wanted: VectorsWanted, body: pa.Buffer | None
) -> pa.Buffer:
    """Return the vectors that an engine process wants."""
    if models is None or body is None:
        raise NotFoundError(f"no embedding model '{wanted.model}'")
    vectors = models.vectors(wanted.model, read(body).column(0).to_pylist(), wanted.mark)
    return written(pa.table({"vector": vectors}))
