"""Searches the rows of a share by indexes: finds, filters and orders them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caraway_core.errors import NotDistributableError
from caraway_core.ids import TableName
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_engine.rows import choosing
from caraway_engine.rows.units import RowUnit, RowUnits
from caraway_executor.indexes.kept import FoundSegment, KeptSegments, WantedIndex
from caraway_search import found_rows
from caraway_search.hits import Hits
from caraway_search.queries.parsing import parse
from caraway_search.queries.tree import QueryNode
from caraway_search.text.segment import TextIndexSpec, TextSegment
from caraway_search.text.statistics import ColumnStatistics, TextStatistics, packed, unpacked
from caraway_search.vector_scores import METRICS
from caraway_search.vectors import searching
from caraway_search.vectors.exact import QueryVector
from caraway_search.vectors.segment import VectorIndexSpec, VectorSegment

_FEW_ROWS = 256
"""Up to this number, rows are taken one by one: that is faster than taking some of each batch."""
_SOME_ROWS = 16
"""More numbers are taken at once."""
Flags = NDArray[np.bool_]
Masks = Sequence[Flags | None]


class ShareFilter(Protocol):
    """Evaluates filters of searches over all units; `ContextFilter` is one."""

    def passing(self, where: str) -> Flags: ...

    def check(self, where: str) -> None: ...


@dataclass(frozen=True, slots=True)
class SearchedShare:
    """The rows that are searched."""

    table: TableName
    schema: pa.Schema
    units: RowUnits
    make_filter: Callable[[], ShareFilter]
    builds: bool = True
    """True if missing segments of indexes are built."""


def answered(order: IndexOrder, share: SearchedShare, kept: KeptSegments) -> pa.RecordBatch:
    """Return the best rows of a share: the columns, then ties, scores and, if asked, parts.

    An order without `pieces` is answered as its statement is, without the ties.

    Raises:
        NotDistributableError: no index can answer this; the statement can.
        QueryError: rows or indexes do not fit in memory.
    """
    if isinstance(order.by, VectorOrder):
        return _rows(order, share, _by_vectors(order, order.by, share, kept))
    words = _SearchedWords.over_share(order.by, share, kept)
    statistics = order.by.statistics or words.numbers()
    if order.by.statistics is None and order.limit == 0:
        return _batch(found_rows.counted(statistics))
    return _rows(order, share, words.hits(statistics, order.limit, _masks(order, share)))


def _by_vectors(
    order: IndexOrder, by: VectorOrder, share: SearchedShare, kept: KeptSegments
) -> "list[_PlacedHits]":
    metric = next((each for each in METRICS if each == by.metric), None)
    if metric is None or by.column not in share.schema.names:
        raise NotDistributableError(f"no index of {by.column!r} by {by.metric!r}")
    query = QueryVector.from_values(np.frombuffer(by.vector, np.float32), metric)
    spec = VectorIndexSpec(len(query.values), metric, by.recall)
    index = wanted_vectors(by.column, spec)
    segments = kept.segments_over(share.table, share.units, index, builds=share.builds)
    masks = _masks(order, share)
    hits = searching.search(
        [each.segment for each in segments],
        query,
        order.limit,
        [_joined(masks, share.units, each.places) for each in segments],
    )
    return [
        _PlacedHits.from_hits(e, share.units, f.places) for e, f in zip(hits, segments, strict=True)
    ]


def wanted_vectors(column: str, spec: VectorIndexSpec) -> WantedIndex[VectorSegment]:
    """Return the index of a column of vectors."""
    return WantedIndex(("vectors", column, spec), partial(_vectors_built, spec, column), (column,))


def wanted_words(by: WordOrder) -> tuple[WantedIndex[TextSegment], TextIndexSpec]:
    """Return the index of an order by words."""
    spec = TextIndexSpec(dict(zip(by.columns, by.boosts, strict=True)), by.language)
    name = "words", by.columns, by.boosts, by.language
    return WantedIndex(name, partial(_words_built, spec), by.columns), spec


def _vectors_built(spec: VectorIndexSpec, column: str, units: Sequence[RowUnit]) -> VectorSegment:
    return VectorSegment.build(spec, pa.chunked_array([u.batch.column(column) for u in units]))


def _words_built(spec: TextIndexSpec, units: Sequence[RowUnit]) -> TextSegment:
    texts = {
        name: pa.chunked_array([unit.batch.column(name) for unit in units]) for name in spec.boosts
    }
    return TextSegment.build(spec, texts)


@dataclass(frozen=True, slots=True)
class _PlacedHits:
    """Hits with the units that they are in; `rows` are counted in each unit."""

    places: NDArray[np.int64]
    rows: NDArray[np.int64]
    hits: Hits

    @classmethod
    def from_hits(cls, hits: Hits, units: Sequence[RowUnit], places: Sequence[int]) -> Self:
        """Place the hits of a segment over some of the units."""
        ends = np.cumsum([units[place].batch.num_rows for place in places])
        owners = np.searchsorted(ends, hits.rows, side="right")
        starts = np.concatenate(([0], ends[:-1]))
        return cls(np.asarray(places, np.int64)[owners], hits.rows - starts[owners], hits)


@dataclass(frozen=True, slots=True)
class _SearchedWords:
    """A query, and the segments of a share."""

    query: QueryNode
    columns: tuple[str, ...]
    units: Sequence[RowUnit]
    found: Sequence[FoundSegment[TextSegment]]

    @classmethod
    def over_share(cls, by: WordOrder, share: SearchedShare, kept: KeptSegments) -> Self:
        """Build the segments that are not kept."""
        if any(name not in share.schema.names for name in by.columns):
            raise NotDistributableError(f"no index of {', '.join(by.columns)}")
        index, spec = wanted_words(by)
        segments = kept.segments_over(share.table, share.units, index, builds=share.builds)
        return cls(parse(by.text, spec.analyzer), by.columns, share.units, segments)

    def numbers(self) -> list[int]:
        """Return the statistics of these rows for scores."""
        seen = [_seen(unit) for unit in self.units]
        parts = [
            each.segment.statistics(self.query, _joined(seen, self.units, each.places))
            for each in self.found
        ]
        none = TextStatistics({name: ColumnStatistics() for name in self.columns})
        return packed(TextStatistics.merged([none, *parts]), self.query, self.columns)

    def hits(self, statistics: Sequence[int], limit: int, masks: Masks) -> list[_PlacedHits]:
        """The best rows of each segment."""
        text_statistics = unpacked(statistics, self.query, self.columns)
        found = []
        for each in self.found:
            mask = _joined(masks, self.units, each.places)
            hits = each.segment.search(self.query, text_statistics, limit, mask)
            found.append(_PlacedHits.from_hits(hits, self.units, each.places))
        return found


def _joined(masks: Masks, units: Sequence[RowUnit], places: Sequence[int]) -> Flags | None:
    """The mask of a segment over some of the units; None if all of its rows may be found."""
    if all(masks[place] is None for place in places):
        return None
    parts = []
    for place in places:
        mask = masks[place]
        parts.append(np.ones(units[place].batch.num_rows, np.bool_) if mask is None else mask)
    return np.concatenate(parts)


def _masks(order: IndexOrder, share: SearchedShare) -> Masks:
    """Which rows may be found: those that are seen, and pass the filter."""
    masks = [_seen(unit) for unit in share.units]
    if order.where is None or not share.units:
        return masks
    passes = share.make_filter().passing(order.where)
    ends = np.cumsum([unit.batch.num_rows for unit in share.units])
    parts = np.split(passes, ends[:-1])
    return [p if mask is None else p & mask for p, mask in zip(parts, masks, strict=True)]


def _seen(unit: RowUnit) -> Flags | None:
    return None if unit.seen is None else np.frombuffer(unit.seen, np.bool_)


def _rows(
    order: IndexOrder, share: SearchedShare, placed_hits: Sequence[_PlacedHits]
) -> pa.RecordBatch:
    """Take the best rows: first the columns that break ties, then all requested columns."""
    places = np.concatenate([np.zeros(0, np.int64), *(each.places for each in placed_hits)])
    rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in placed_hits)])
    scores = np.concatenate([np.zeros(0), *(each.hits.scores for each in placed_hits)])
    best = found_rows.first_of_distinct(scores, order.limit)
    if best is None:
        chosen = _Chosen.from_units(share.units, places, rows)
        ties = [_taken(share, name, chosen) for name in order.ties]
        deciding = pa.table([pa.array(scores), *ties], [str(n) for n in range(len(ties) + 1)])
        best = found_rows.first(deciding, range(1, len(ties) + 1), 0, order.limit).to_numpy()
    chosen = _Chosen.from_units(share.units, places[best], rows[best])
    taken = {name: _taken(share, name, chosen) for name in {*order.columns, *order.ties}}
    columns = [taken[name] for name in (*order.columns, *order.ties)]
    columns.append(pa.array(scores[best]))
    if isinstance(order.by, VectorOrder) and order.by.has_parts:
        hits = (each.hits for each in placed_hits)
        parts = [np.zeros(len(h.rows), np.int64) if h.parts is None else h.parts for h in hits]
        columns.append(pa.array(np.concatenate([np.zeros(0, np.int64), *parts])[best]))
    batch = pa.RecordBatch.from_arrays(columns, [f"c{n}" for n in range(len(columns))])
    if order.pieces is not None:
        return batch
    return _batch(found_rows.answer(order, pa.Table.from_batches([batch])))


def _batch(rows: pa.Table) -> pa.RecordBatch:
    if rows.num_rows == 0:
        return pa.RecordBatch.from_arrays(
            [pa.array([], type_) for type_ in rows.schema.types], names=rows.column_names
        )
    return rows.combine_chunks().to_batches()[0]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Some rows: their units, their numbers in these, and their numbers among all rows."""

    places: NDArray[np.int64]
    rows: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @classmethod
    def from_units(
        cls, units: RowUnits, places: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> "_Chosen":
        """Choose rows of units."""
        return cls(places, rows, np.asarray(units.starts, np.int64)[places] + rows)


def _taken(share: SearchedShare, name: str, chosen: _Chosen) -> object:
    """The values of a column in some rows, in their order."""
    type_ = share.schema.field(name).type
    if len(chosen.rows) == 0:
        return pa.array([], type_)
    if len(chosen.rows) > _SOME_ROWS and pa.types.is_primitive(type_):
        return _whole(share.units.column(name).take(pa.array(chosen.numbers)))
    if len(chosen.rows) <= _FEW_ROWS:
        return _few(share, name, type_, chosen)
    places, rows = chosen.places, chosen.rows
    order = np.argsort(places, kind="stable")
    parts = []
    for place in np.unique(places):
        wanted = rows[order][places[order] == place]
        parts.append(
            _compact(choosing.take(share.units[place].batch.column(name), pa.array(wanted)))
        )
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return choosing.take(pa.concat_arrays(parts), pa.array(back))


def _few(share: SearchedShare, name: str, type_: pa.DataType, chosen: _Chosen) -> pa.Array:
    column = share.units.column(name)
    if pa.types.is_string_view(type_) or pa.types.is_binary_view(type_):
        # To join slices takes longer: each of them has all texts of its batch.
        return pa.array([column[number].as_py() for number in chosen.numbers.tolist()], type_)
    wanted = zip(chosen.places.tolist(), chosen.rows.tolist(), strict=True)
    return pa.concat_arrays([column.chunk(place).slice(row, 1) for place, row in wanted])


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _compact(column: pa.Array) -> pa.Array:
    """Copy the texts of a few rows, which share those of their whole batch."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string()).cast(column.type)
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.large_binary()).cast(column.type)
    return column
