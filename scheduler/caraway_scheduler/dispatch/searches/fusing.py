"""Fuses the rows of several searches of one table by their ranks."""

import math
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import InvalidQueryError
from caraway_core.statement_searches import FUSED_SCORE, FusedSearches, RecencyDecay


def fused(
    fusion: FusedSearches,
    found: Sequence[pa.Table],
    columns: Sequence[str],
    limit: int,
    now_s: float,
) -> pa.Table:
    """Return the columns of the best rows and their fused scores, best first.

    A row scores `weight / (k + rank)` in each search that found it. Ties are in the order of the
    key. `now_s` is the time from which ages are counted, in seconds since 1970.

    Raises:
        InvalidQueryError: the time column holds no times.
    """
    scores: dict[Hashable, float] = {}
    places: dict[Hashable, int] = {}
    start = 0
    for number, (each, rows) in enumerate(zip(fusion.searches, found, strict=True)):
        ranked: set[Hashable] = set()
        for rank, key in enumerate(_keys(rows, fusion.key, number), start=1):
            if key in ranked:
                continue
            ranked.add(key)
            places.setdefault(key, start + rank - 1)
            scores[key] = scores.get(key, 0.0) + each.weight / (fusion.k + rank)
        start += rows.num_rows
    names = found[0].schema.names
    every = pa.concat_tables([rows.select(names) for rows in found])
    chosen = every.take(pa.array(places.values(), pa.int64()))
    values = np.fromiter((scores[key] for key in places), np.float64, len(places))
    if fusion.decay is not None:
        values = values * _factors(chosen.column(fusion.decay.column), fusion.decay, now_s)
    chosen = chosen.append_column(FUSED_SCORE, pa.array(values))
    best = _order(chosen, fusion.key)[:limit]
    return chosen.take(best).select([*columns, FUSED_SCORE])


def _keys(rows: pa.Table, key: Sequence[str], number: int) -> Iterator[Hashable]:
    """Yield what tells the rows of a search apart; NULL in the only key column matches nothing."""
    columns = [_values(rows.column(name)) for name in key]
    if len(columns) > 1:
        yield from zip(*columns, strict=True)
        return
    for place, value in enumerate(columns[0]):
        yield (number, place) if value is None else (value,)


def _values(column: pa.ChunkedArray) -> Sequence[Hashable]:
    kind = column.type
    if pa.types.is_fixed_size_list(kind) and column.null_count == 0 and len(column):
        flat = column.combine_chunks().flatten()
        if flat.null_count == 0 and pa.types.is_floating(flat.type):
            return [row.tobytes() for row in flat.to_numpy().reshape(len(column), -1)]
    values: list[Hashable] = column.to_pylist()
    if pa.types.is_nested(kind):
        return list(map(repr, values))
    if pa.types.is_floating(kind):
        return ["NaN" if isinstance(value, float) and math.isnan(value) else value
                for value in values]  # fmt: skip
    return values


def _order(rows: pa.Table, key: Sequence[str]) -> pa.Array:
    by = [(name, "ascending") for name in key if _is_sortable(rows.schema.field(name).type)]
    return pc.sort_indices(rows, sort_keys=[(FUSED_SCORE, "descending"), *by])


def _is_sortable(kind: pa.DataType) -> bool:
    is_view = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
    return not (pa.types.is_nested(kind) or is_view or pa.types.is_interval(kind))


def _factors(times: pa.ChunkedArray, decay: RecencyDecay, now_s: float) -> np.ndarray:
    """Return what each fused score is multiplied by; rows without a time keep theirs."""
    kind = times.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise InvalidQueryError(
            f"rrf: `time_column` '{decay.column}' is of type {kind}; it must be a date or timestamp"
        )
    micros = times.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    made_s = pc.divide(pc.cast(micros, pa.float64()), 1e6)
    ages = np.maximum(now_s - made_s.to_numpy(zero_copy_only=False), 0.0)
    if decay.kind == "linear":
        factors = np.maximum(1.0 - ages / decay.window_s, 0.0)
    else:
        factors = np.exp(-decay.constant * ages / decay.scale_s)
    return np.where(np.isnan(ages), 1.0, factors)
