"""Merges the rankings of a search: rows of one table by reciprocal ranks, and tables by scores."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from caraway_assist.search.tables import RankedTable
from caraway_engine.rows import times
from caraway_search.ranking.fusion import FusedRow, RankedList, fuse

types = pa.types
_SCORE = attrgetter("score")


class RankedPlace(NamedTuple):
    """A row of a ranking: which ranking it is, and its place there, from 0."""

    ranking: int
    row: int


@dataclass(slots=True)
class MergedRow:
    """A row that is in one or several rankings of its table, in their order."""

    score: float
    places: list[RankedPlace]


def merged(
    rankings: Sequence[RankedTable], key: Sequence[str], limit: int, *, keeps_scores: bool
) -> list[MergedRow]:
    """Merge the rankings of one table: the best rows, best first.

    Ties are in the order of the key. With `keeps_scores`, which one ranking alone can have, scores
    stay as they are; otherwise they are sums of 1 / (k + rank).
    """
    found = [_identities(each.rows, key) for each in rankings]
    # Rows with equal identities are one row, at the first of their places.
    places: list[dict[object, int]] = []
    for identities in found:
        own: dict[object, int] = {}
        for place, identity in enumerate(identities):
            own.setdefault(identity, place)
        places.append(own)
    scored: Iterable[tuple[object, float]]
    if keeps_scores:
        (own,), scores = places, rankings[0].scores.to_pylist()
        scored = ((identity, scores[place]) for identity, place in own.items())
    else:
        scored = _in_order(fuse([RankedList(each) for each in found]))
    return [
        MergedRow(
            score,
            [RankedPlace(n, own[identity]) for n, own in enumerate(places) if identity in own],
        )
        for identity, score in islice(scored, limit)
    ]


def _in_order(fused: Iterable[FusedRow[object]]) -> Iterator[FusedRow[object]]:
    """Order consecutive rows of equal score by their keys."""
    for _, equal in groupby(fused, _SCORE):
        rows = list(equal)
        # Most rows share no score, and then need no comparison of their keys.
        yield from rows if len(rows) == 1 else sorted(rows, key=_by_key)


def _by_key(row: FusedRow[Any]) -> list[tuple[bool, bool, object]]:
    return list(map(_orderable, row.key))


def _orderable(value: object) -> tuple[bool, bool, object]:
    """Return a key that puts NULL last and NaN, whose text stands for it, before that."""
    return value is None, isinstance(value, str), 0 if value is None else value


def _identities(rows: pa.Table, key: Sequence[str]) -> list[Hashable]:
    """Return the identity of each row: its key, or else all of its values."""
    names = key or rows.column_names[:-1]
    if not names:
        return [(place,) for place in range(rows.num_rows)]
    return list(zip(*(_hashable(rows.column(name)) for name in names), strict=True))


def _hashable(column: pa.ChunkedArray) -> list[object]:
    """Return values of a column: of lists, structs and NaN their texts, which equal ones share."""
    values: list[object] = times.as_numbers(column).to_pylist()
    if types.is_nested(column.type):
        return [None if each is None else repr(each) for each in values]
    if types.is_floating(column.type):
        return [repr(each) if each is not None and each != each else each for each in values]
    return values


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
