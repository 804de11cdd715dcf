"""Fuses the rows of several searches of one table by their ranks."""

import math
from collections.abc import Hashable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import InvalidQueryError
from caraway_core.statements.searches import FUSED_SCORE, FusedSearches, RecencyDecay
from caraway_engine.rows import plain, times
from caraway_search.ranking import fusion as ranks
from caraway_search.ranking.fusion import Decay, ExponentialDecay, LinearDecay, RankedList, Recency

_MICROS = 1e6


def fused(
    fusion: FusedSearches,
    found: Sequence[pa.Table],
    columns: Sequence[str],
    limit: int,
    now_s: float,
) -> pa.Table:
    """Return the columns of the best rows and their fused scores, best first.

    Ties are in the order of the key. `now_s` is the time from which ages are counted, in seconds
    since 1970.

    Raises:
        InvalidQueryError: the time column holds no times.
    """
    lists = [
        RankedList(_keys(rows, fusion.key, number), each.weight)
        for number, (each, rows) in enumerate(zip(fusion.searches, found, strict=True))
    ]
    # pyarrow cannot choose rows of columns with views; the table of the search restores the types.
    batches = [batch for each in found for batch in each.to_batches()]
    rows = plain.plain_table(batches, plain.plain_schema(found[0].schema))
    places: dict[Hashable, int] = {}
    for place, key in enumerate(key for each in lists for key in each.keys):
        places.setdefault(key, place)
    recency = None
    if fusion.decay is not None:
        recency = _recency(rows.column(fusion.decay.column), fusion.decay, places, now_s)
    best = ranks.fuse(lists, fusion.k, recency)
    chosen = rows.take(pa.array([places[each.key] for each in best], pa.int64()))
    scores = pa.array([each.score for each in best], pa.float64())
    chosen = chosen.append_column(FUSED_SCORE, scores)
    return chosen.take(_order(chosen, fusion.key)[:limit]).select([*columns, FUSED_SCORE])


def _keys(rows: pa.Table, key: Sequence[str], number: int) -> list[Hashable]:
    """Return what tells the rows of a search apart; NULL in the only key column matches nothing."""
    columns = [_values(rows.column(name)) for name in key]
    if len(columns) > 1:
        return list(zip(*columns, strict=True))
    return [
        (number, place) if value is None else (value,) for place, value in enumerate(columns[0])
    ]


def _values(column: pa.ChunkedArray) -> list[Hashable]:
    kind = column.type
    if pa.types.is_fixed_size_list(kind) and column.null_count == 0 and len(column):
        flat = column.combine_chunks().flatten()
        if flat.null_count == 0 and pa.types.is_floating(flat.type):
            return [row.tobytes() for row in flat.to_numpy().reshape(len(column), -1)]
    values: list[Hashable] = times.as_numbers(column).to_pylist()
    if pa.types.is_nested(kind):
        return list(map(repr, values))
    if pa.types.is_floating(kind):
        return ["NaN" if isinstance(each, float) and math.isnan(each) else each for each in values]
    return values


def _order(rows: pa.Table, key: Sequence[str]) -> pa.Array:
    by = [(name, "ascending") for name in key if _is_sortable(rows.schema.field(name).type)]
    return pc.sort_indices(rows, sort_keys=[(FUSED_SCORE, "descending"), *by])


def _is_sortable(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind))


def _recency(
    made_at: pa.ChunkedArray, decay: RecencyDecay, places: Mapping[Hashable, int], now_s: float
) -> Recency[Hashable]:
    """Return how the age of each row lowers its score."""
    kind = made_at.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise InvalidQueryError(
            f"rrf: `time_column` '{decay.column}' is of type {kind}; it must be a date or timestamp"
        )
    micros = made_at.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_pylist()
    ages_s = {
        key: now_s - made / _MICROS
        for key, place in places.items()
        if (made := micros[place]) is not None
    }
    lowering: Decay = ExponentialDecay(decay.constant, decay.scale_s)
    if decay.kind == "linear":
        lowering = LinearDecay(decay.window_s)
    return Recency(lowering, ages_s)
