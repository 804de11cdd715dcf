"""Merges the rankings of a search: rows of one table by reciprocal ranks, and tables by scores."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_scheduler.search.tables import RankedTable
from caraway_search.ranking.fusion import RankedList, fuse


@dataclass(frozen=True, slots=True)
class RankedPlace:
    """A row of a ranking: which ranking it is, and its place there, from 0."""

    ranking: int
    row: int


@dataclass(slots=True)
class MergedRow:
    """A row that is in one or several rankings of its table, in their order."""

    score: float
    places: list[RankedPlace] = field(default_factory=list)


def merged(
    rankings: Sequence[RankedTable], key: Sequence[str], *, keeps_scores: bool
) -> list[MergedRow]:
    """Merge the rankings of one table, best row first; ties are in the order of the key.

    With `keeps_scores`, which one ranking alone can have, scores stay as they are; otherwise they
    are sums of 1 / (k + rank).
    """
    rows: dict[Hashable, MergedRow] = {}
    orders: dict[Hashable, Any] = {}
    lists: list[RankedList[Hashable]] = []
    for number, ranking in enumerate(rankings):
        scores = ranking.scores.to_pylist()
        found = _identities(ranking.rows, key)
        lists.append(RankedList([identity for identity, _ in found]))
        for place, (identity, order) in enumerate(found):
            row = rows.setdefault(identity, MergedRow(scores[place]))
            orders.setdefault(identity, order)
            if not row.places or row.places[-1].ranking != number:
                # Rows that nothing tells apart are one row.
                row.places.append(RankedPlace(number, place))
    if keeps_scores:
        return list(rows.values())
    for fused in fuse(lists):
        rows[fused.key].score = fused.score
    in_order = sorted(rows.items(), key=lambda item: (-item[1].score, orders[item[0]]))
    return [row for _, row in in_order]


def _identities(rows: pa.Table, key: Sequence[str]) -> Sequence[tuple[Hashable, Any]]:
    """Return for each row what tells it apart, and what orders it among rows of one score."""
    names = key or rows.column_names[:-1]
    columns = [rows.column(name).to_pylist() for name in names]
    if not columns:
        return [((place,), (place,)) for place in range(rows.num_rows)]
    found = []
    for values in zip(*columns, strict=True):
        known = tuple(map(_hashable, values))
        found.append((known, tuple((value is None, _or_zero(value)) for value in known)))
    return found


def _hashable(value: Any) -> Hashable:
    # Lists, structs and NaN: the text of equal values is equal.
    if isinstance(value, list | dict | float):
        return repr(value) if not isinstance(value, float) or value != value else value
    return value  # type: ignore[no-any-return]


def _or_zero(value: Any) -> Any:
    return 0 if value is None else value


def matches(ranked: RankedTable, row: int) -> Mapping[str, str]:
    """Return what a row was found by: the text of each searched column, or of its best chunk."""
    found = {}
    for column in ranked.ranking.columns:
        text = ranked.rows.column(column)[row].as_py()
        if not isinstance(text, str):
            continue
        found[column] = _chunk(ranked, column, text, row)
    return found


def _chunk(ranked: RankedTable, column: str, text: str, row: int) -> str:
    if ranked.chunks is None:
        return text
    place = ranked.chunks[row].as_py()
    offsets = ranked.rows.column(f"{column}_offset")[row].as_py()
    if place is None or not offsets or place >= len(offsets):
        return text
    start, end = offsets[place]
    return text[start:end]
