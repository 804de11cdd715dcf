"""Says how an index would answer a search of a share, and builds it on request."""

from typing import Any

import pyarrow as pa

from caraway_core.errors import NotDistributableError
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_executor.indexes.kept import KeptSegments
from caraway_executor.indexes.searching import SearchedShare, wanted_vectors, wanted_words
from caraway_search.vector_scores import METRICS
from caraway_search.vectors.segment import FEWEST_CODED, VectorIndexSpec


def explained(order: IndexOrder, share: SearchedShare, kept: KeptSegments) -> pa.RecordBatch:
    """Return one row: segments, their rows, rows without a segment, and whether all is exact.

    Raises:
        NotDistributableError: no index can answer; the message says why, for users.
    """
    columns = (order.by.column,) if isinstance(order.by, VectorOrder) else order.by.columns
    if any(name not in share.schema.names for name in columns):
        raise NotDistributableError(f"the stored rows have no column {', '.join(columns)}")
    if order.where is not None and share.units:
        share.make_filter().check(order.where)
    if isinstance(order.by, WordOrder):
        index, _ = wanted_words(order.by)
        if order.is_built:
            kept.warm_up(share.table, share.units, index)
        segments, missing = kept.known(share.table, share.units, lambda each: each == index.name)
        is_exact = True
    else:
        if order.is_built:
            _build_vectors(order.by, share, kept)
        segments, missing, is_exact = _vectors(order.by, share, kept)
    rows = sum(unit.batch.num_rows for unit in share.units) - missing
    values = [len(segments), rows, missing, is_exact]
    return pa.RecordBatch.from_arrays(
        [pa.array([each]) for each in values], ["segments", "rows", "missing", "is_exact"]
    )


def _build_vectors(by: VectorOrder, share: SearchedShare, kept: KeptSegments) -> None:
    metric = next((each for each in METRICS if each == by.metric), None)
    length = _first_length(by.column, share)
    if metric is not None and length is not None:
        spec = VectorIndexSpec(length, metric, by.recall)
        kept.warm_up(share.table, share.units, wanted_vectors(by.column, spec))


def _first_length(column: str, share: SearchedShare) -> int | None:
    """Return the length of the first vector; None without one."""
    for unit in share.units:
        vectors = unit.batch.column(column)
        if vectors.null_count == len(vectors):
            continue
        for each in vectors:
            value = each.as_py()
            while value and isinstance(value[0], list):  # one vector for each chunk of a text
                value = value[0]
            if value:
                return len(value)
    return None


def _vectors(
    by: VectorOrder, share: SearchedShare, kept: KeptSegments
) -> tuple[list[Any], int, bool]:
    if by.metric not in METRICS:
        raise NotDistributableError(f"no index has scores by {by.metric!r}")

    def is_meant(name: Any) -> bool:
        kind, column, *rest = name
        if kind != "vectors" or column != by.column:
            return False
        return bool((rest[0].metric, rest[0].recall) == (by.metric, by.recall))

    segments, missing = kept.known(share.table, share.units, is_meant)
    is_exact = all(each.codes is None for each in segments)
    return segments, missing, is_exact and (missing < FEWEST_CODED or by.recall >= 1)
