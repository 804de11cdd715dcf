"""Orders rows that searches found: by score, then by the columns that decide between equal ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caraway_core.index_orders import IndexOrder, WordOrder

Take = Callable[[pa.Array, pa.Array], pa.Array]
"""Returns the values with some numbers; Arrow's own does so for some types only."""


@dataclass(frozen=True)
class FoundShares:
    """The best rows of each share, in their order."""

    order: IndexOrder
    shares: Sequence[pa.Table]

    def cut_short(self, asked: int) -> list[bool]:
        """True if each share may have more of the best rows than the requested number.

        A share may if it returned that number of rows, and even its last row is among the best.
        """
        best = {*self._best.to_pylist()}
        lasts = accumulate(each.num_rows for each in self.shares)
        return [
            each.num_rows >= asked and last - 1 in best
            for each, last in zip(self.shares, lasts, strict=True)
        ]

    def answer(self, take: Take) -> pa.Table:
        """The best rows of all shares, as the statement of the order returns them."""
        answered = answer(self.order, self._rows)
        if len(self._best) == 0:
            return answered.slice(0, 0)
        columns = [take(_whole(column), self._best) for column in answered.columns]
        return pa.table(columns, answered.column_names)

    @cached_property
    def _rows(self) -> pa.Table:
        return pa.concat_tables(self.shares)

    @cached_property
    def _best(self) -> pa.Array:
        width = len(self.order.columns)
        score = width + len(self.order.ties)
        return first(self._rows, range(width, score), score, self.order.limit)


def merged(order: IndexOrder, shares: Sequence[pa.Table], take: Take) -> pa.Table:
    """The rows of all shares, as the statement of the order returns them."""
    if order.is_explained:
        return pa.concat_tables(shares)
    if isinstance(order.by, WordOrder) and order.by.statistics is None:
        numbers = (each.column(0).to_pylist()[0] for each in shares)
        return counted([sum(each) for each in zip(*numbers, strict=True)])
    return FoundShares(order, shares).answer(take)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def counted(numbers: Sequence[int]) -> pa.Table:
    """The answer to an order that counts."""
    return pa.table({"statistics": pa.array([numbers], pa.list_(pa.int64()))})


def answer(order: IndexOrder, rows: pa.Table) -> pa.Table:
    """Rows of a share without the columns that only decide between equal scores."""
    width, score = len(order.columns), len(order.columns) + len(order.ties)
    names = list(order.columns)
    for wanted in ("score", "part")[: rows.num_columns - score]:
        while wanted in names:
            wanted = f"_{wanted}"
        names.append(wanted)
    kept = [*range(width), *range(score, rows.num_columns)]
    return rows.select(kept).rename_columns(names)


def first(rows: pa.Table, ties: Sequence[int], score: int, limit: int) -> Any:
    """The numbers of the best rows: the highest scores, then the least ties, NULL last.

    `score` and `ties` are places of columns.
    """
    scores = rows.column(score)
    if scores.null_count == 0 and pa.types.is_float64(scores.type):
        best = first_of_distinct(scores.to_numpy(), limit)
        if best is not None:
            return pa.array(best)
    columns = {"score": rows.column(score)}
    columns |= {str(place): _sortable(rows.column(place)) for place in ties}
    keys = [("score", "descending", "at_end")]
    keys += [(str(place), "ascending", "at_end") for place in ties]
    return pc.sort_indices(pa.table(columns), keys)[:limit]


def first_of_distinct(scores: NDArray[np.float64], limit: int) -> NDArray[np.int64] | None:
    """The numbers of the best rows, if no tie decides between them; else None."""
    if limit <= 0:
        return None
    order: NDArray[np.int64] = np.argsort(-scores, kind="stable")[: limit + 1]
    kept = scores[order]
    # NaN is not greater than anything, either.
    return order[:limit] if np.all(kept[:-1] > kept[1:]) else None


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type that Arrow sorts, in the same order."""
    type_ = column.type
    if pa.types.is_dictionary(type_):
        return _sortable(column.cast(type_.value_type))
    if pa.types.is_string_view(type_):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(type_):
        return column.cast(pa.large_binary())
    return column.cast(pa.float32()) if pa.types.is_float16(type_) else column
