"""Documents to search, made by rule: common and rare words, and vectors without clusters."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

DIMENSIONS = 384
_WORDS = 40
_VOCABULARY = 50_000
_FILTERS = 100
_BLOCK = 20_000
_SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()

Vectors = NDArray[np.float32]


def documents(path: Path, rows: int, seed: int = 5) -> None:
    """Write documents: `id`, `part` (one of 100 values, for filters), `body` and its vector."""
    chosen = np.random.default_rng(seed)
    words = np.array(vocabulary())
    schema = pa.schema(
        {
            "id": pa.int64(),
            "part": pa.int32(),
            "body": pa.string(),
            "body_embedding": pa.list_(pa.float32(), DIMENSIONS),
        }
    )
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, _BLOCK):
            count = min(_BLOCK, rows - first)
            ids = np.arange(first, first + count)
            texts = [" ".join(words[each]) for each in _zipf(chosen, (count, _WORDS))]
            vectors = pa.FixedSizeListArray.from_arrays(
                pa.array(_unit(chosen, count).ravel()), DIMENSIONS
            )
            parts = pa.array((ids * 7919 % _FILTERS).astype(np.int32))
            writer.write_table(pa.table([ids, parts, texts, vectors], schema=schema))


def vocabulary() -> list[str]:
    """Words of two to five syllables, none of which is a stem of another."""
    base = len(_SYLLABLES)
    words = []
    for number in range(_VOCABULARY):
        digits, rest = [], number * 31 + 400
        while rest:
            rest, digit = divmod(rest, base)
            digits.append(_SYLLABLES[digit])
        words.append("".join(digits) + "k")
    return words


def queries(count: int, seed: int = 11) -> list[str]:
    """Texts of three words, as frequent in queries as in documents."""
    chosen = np.random.default_rng(seed)
    words = np.array(vocabulary())
    return [" ".join(words[each]) for each in _zipf(chosen, (count, 3))]


def vectors_of(path: Path) -> Vectors:
    """The vectors of the documents of a file."""
    column = pq.read_table(path, columns=["body_embedding"]).column(0).combine_chunks()
    found: Vectors = column.flatten().to_numpy().reshape(-1, DIMENSIONS)
    return found


def nearest(vectors: Vectors, queries: Vectors, count: int) -> list[list[int]]:
    """The numbers of the nearest unit vectors to each query by their cosine, all compared."""
    found = []
    for scores in (vectors @ queries.T).T:
        best = np.argpartition(-scores, count)[:count]
        found.append([int(each) for each in best[np.argsort(-scores[best])]])
    return found


def _unit(chosen: np.random.Generator, count: int) -> Vectors:
    vectors = chosen.standard_normal((count, DIMENSIONS), np.float32)
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _zipf(chosen: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Places in the vocabulary: the word at place n is about n times rarer than the first."""
    places = np.exp(chosen.random(shape) * np.log(_VOCABULARY)).astype(np.int64) - 1
    clipped: NDArray[np.int64] = places.clip(0, _VOCABULARY - 1)
    return clipped
