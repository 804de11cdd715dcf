"""One immutable vector index over some rows of a table."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caraway_search.errors import DamagedIndexError
from caraway_search.packing import Packed, pack, unpack
from caraway_search.vector_scores import Metric
from caraway_search.vectors.codes import BLOCK, CodeGroup, VectorCodes
from caraway_search.vectors.reading import ColumnVectors

_KIND = "vectors"
FEWEST_CODED = 4096
"""Fewer vectors are compared exactly, which takes less than a millisecond."""


@dataclass(frozen=True, slots=True)
class VectorIndexSpec:
    """The vectors of an index, and the least share of the best rows that a search should find.

    With `recall` 1 every vector is compared exactly.
    """

    dimensions: int
    metric: Metric = "cosine"
    recall: float = 0.98


@dataclass(frozen=True)
class VectorSegment:
    """The vectors of some rows, and codes of those that can be searched if they are many.

    Code `n` stands for vector `coded[n]`.
    """

    spec: VectorIndexSpec
    vectors: ColumnVectors
    codes: VectorCodes | None

    @classmethod
    def build(cls, spec: VectorIndexSpec, column: object) -> Self:
        """Index a column of vectors."""
        vectors = ColumnVectors.read(column, spec.dimensions)
        usable = np.count_nonzero(vectors.usable)
        if usable < FEWEST_CODED or spec.recall >= 1:
            return cls(spec, vectors, None)
        codes = _coded(vectors, spec.metric)
        if codes is not None:
            codes.prepare()
        return cls(spec, vectors, codes)

    def packed(self) -> bytes:
        """The serialised form, which has the codes and not the vectors."""
        attributes: dict[str, object] = {
            "metric": self.spec.metric,
            "recall": self.spec.recall,
            "dimensions": self.spec.dimensions,
            "vectors": len(self.vectors.matrix),
            "usable": int(np.count_nonzero(self.vectors.usable)),
        }
        if (codes := self.codes) is None:
            return pack(_KIND, Packed(attributes, {}))
        attributes["groups"] = [[each.scale, each.error] for each in codes.groups]
        arrays: dict[str, NDArray[Any]] = {"centre": codes.centre, "far": codes.far}
        for number, each in enumerate(codes.groups):
            arrays |= {f"members{number}": each.members, f"codes{number}": each.codes}
        return pack(_KIND, Packed(attributes, arrays))

    @classmethod
    def opened(cls, block: object, column: object) -> Self:
        """The segment of a serialised form over the column that it was built from.

        Raises:
            DamagedIndexError: the bytes are damaged, or belong to another column.
        """
        packed = unpack(_KIND, block)
        attributes = packed.attributes
        spec = VectorIndexSpec(attributes["dimensions"], attributes["metric"], attributes["recall"])
        vectors = ColumnVectors.read(column, spec.dimensions)
        usable = int(np.count_nonzero(vectors.usable))
        if (len(vectors.matrix), usable) != (attributes["vectors"], attributes["usable"]):
            raise DamagedIndexError(
                f"a segment of {attributes['usable']} vectors is not that of a column with {usable}"
            )
        return cls(spec, vectors, _opened_codes(attributes, packed.arrays))

    @property
    def left_out(self) -> int:
        """The vectors that cannot be found."""
        return self.vectors.left_out

    @property
    def nbytes(self) -> int:
        """The memory of the segment without the vectors of the rows."""
        rows = self.vectors.rows
        own = self.vectors.norms.nbytes + self.vectors.usable.nbytes
        # Where some rows have no vector, there is a copy of the others.
        own += sum(each.nbytes for each in self.vectors.matrix.matrices if each.flags.owndata)
        own += 0 if rows is None else 2 * rows.nbytes
        return own + (0 if self.codes is None else self.codes.nbytes)

    @cached_property
    def coded(self) -> NDArray[np.int64]:
        """The vectors that have codes."""
        return np.flatnonzero(self.vectors.usable)


@dataclass(frozen=True)
class _Prepared:
    """Vectors whose dot products with a query, see `searching`, are in the order of its scores."""

    vectors: ColumnVectors
    metric: Metric

    @property
    def dimensions(self) -> int:
        width: int = self.vectors.matrix.matrices[0].shape[1]
        return width + (self.metric == "l2")

    def __call__(self) -> Iterator[NDArray[np.float32]]:
        vectors = self.vectors
        for matrix, numbers in vectors.matrix.blocks(vectors.usable, BLOCK):
            norms = vectors.norms[numbers]
            if self.metric == "dot":
                yield np.ascontiguousarray(matrix, np.float32)
            elif self.metric == "cosine":
                yield (matrix / norms.astype(matrix.dtype)[:, np.newaxis]).astype(np.float32)
            else:
                # |q - x|² = |q|² - 2 (q·x - |x|²/2), a dot product with one more dimension.
                halves = (norms * norms / -2)[:, np.newaxis]
                with np.errstate(over="ignore"):
                    yield np.hstack((matrix, halves)).astype(np.float32)


def _coded(vectors: ColumnVectors, metric: Metric) -> VectorCodes | None:
    prepared = _Prepared(vectors, metric)
    return VectorCodes.build(prepared, prepared.dimensions)


def _opened_codes(found: Mapping[str, Any], arrays: Mapping[str, Any]) -> VectorCodes | None:
    if "centre" not in arrays:
        return None
    groups = (
        CodeGroup(arrays[f"members{number}"], arrays[f"codes{number}"], *numbers)
        for number, numbers in enumerate(found["groups"])
    )
    return VectorCodes(arrays["centre"], tuple(groups), arrays["far"])
