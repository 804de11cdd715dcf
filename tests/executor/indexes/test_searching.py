"""Searches of a share by index: the rows that a scan with numpy finds, in its order."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import NotDistributableError
from caraway_core.ids import TableName
from caraway_core.index_orders import IndexOrder, VectorOrder, WordOrder
from caraway_core.protocols.results import ChunkInfo
from caraway_engine.rows.held import Chunk
from caraway_engine.rows.units import RowUnit, RowUnits
from caraway_executor.indexes import searching
from caraway_executor.indexes.kept import KeptSegments
from caraway_executor.indexes.searching import Flags, SearchedShare

T = TableName("t")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("rank", pa.int32()),
        ("v", pa.list_(pa.float32(), 2)),
        ("body", pa.string_view()),
    ]
)
WORDS = ["red", "blue", "green fox", "red red fox", "", None]
VECTORS = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5], [2.0, 0.0], [0.0, 0.0], None]
Row = tuple[int | None, int, int, bool]
"""A rank, the numbers of a vector and of a text, and whether the row is seen."""
ROWS = st.tuples(
    st.none() | st.integers(0, 3),
    st.integers(0, len(VECTORS) - 1),
    st.integers(0, len(WORDS) - 1),
    st.sampled_from([True, True, False]),
)
UNITS = st.lists(st.lists(ROWS, min_size=1, max_size=6), max_size=4)


class _Chunks:
    def held(self, chunk: ChunkInfo) -> Chunk | None:
        return None

    def count_bytes(self, table: TableName, size_bytes: int) -> object:
        return object()


class _Key:
    """Lives as long as the rows of a unit."""


class _Filter:
    """Passes rows with an even `id`."""

    def __init__(self, units: Sequence[RowUnit]) -> None:
        self._ids = [n for unit in units for n in unit.batch.column("id").to_pylist()]

    def passing(self, where: str) -> Flags:
        assert where == "(id % 2 = 0)"
        return np.array([n % 2 == 0 for n in self._ids], np.bool_)

    def check(self, where: str) -> None:
        return None


@pytest.fixture(scope="module")
def kept() -> Iterator[KeptSegments]:
    made = KeptSegments(_Chunks())
    yield made
    made.close(wait=True)


def _share(units: Sequence[Sequence[Row]]) -> SearchedShare:
    made: list[RowUnit] = []
    number = 0
    for place, rows in enumerate(units):
        ids = range(number, number + len(rows))
        number += len(rows)
        batch = pa.record_batch(
            [
                pa.array(ids, pa.int64()),
                pa.array([row[0] for row in rows], pa.int32()),
                pa.array([VECTORS[row[1]] for row in rows], SCHEMA.field("v").type),
                pa.array([WORDS[row[2]] for row in rows], pa.string_view()),
            ],
            schema=SCHEMA,
        )
        seen = bytes(row[3] for row in rows)
        key = _Key()
        made.append(RowUnit(batch, key, place, key, None if all(seen) else seen))
    return SearchedShare(T, SCHEMA, RowUnits(made), lambda: _Filter(made))


def _scores(units: Sequence[Sequence[Row]], query: list[float], metric: str) -> dict[int, float]:
    """Score the rows that may be found, by `id`."""
    scores: dict[int, float] = {}
    asked = np.array(query)
    for number, row in enumerate(row for rows in units for row in rows):
        vector = VECTORS[row[1]]
        if vector is None or not row[3] or not any(vector):
            continue
        given_vector = np.array(vector)
        if metric == "dot":
            scores[number] = float(given_vector @ asked)
        elif metric == "l2":
            scores[number] = -float(np.linalg.norm(given_vector - asked))
        else:
            size = np.linalg.norm(given_vector) * np.linalg.norm(asked)
            scores[number] = float(given_vector @ asked / size)
    return scores


@settings(max_examples=60)
@given(UNITS, st.sampled_from(["cosine", "dot", "l2"]), st.integers(1, 8), st.booleans())
def test_the_nearest_rows_are_those_of_a_scan(
    kept: KeptSegments,
    units: list[list[Row]],
    metric: str,
    limit: int,
    is_filtered: bool,
) -> None:
    query = [1.0, 0.25]
    by = VectorOrder("v", np.array(query, np.float32).tobytes(), metric, 1.0)
    order = IndexOrder(
        T,
        by,
        ("id", "body"),
        ("rank", "id"),
        "(id % 2 = 0)" if is_filtered else None,
        limit,
        ("p",),
    )
    found = searching.answered(order, _share(units), kept)
    ids, scores = found.column(0).to_pylist(), found.column(found.num_columns - 1).to_pylist()

    expected = _scores(units, query, metric)
    if is_filtered:
        expected = {number: score for number, score in expected.items() if number % 2 == 0}
    ranks = [row[0] for rows in units for row in rows]
    best = sorted(
        expected,
        key=lambda n: (-round(expected[n], 5), ranks[n] is None, ranks[n] or 0, n),
    )[:limit]
    assert ids == best
    assert scores == pytest.approx([expected[number] for number in best], abs=1e-5)
    texts = [WORDS[row[2]] for rows in units for row in rows]
    assert found.column(1).to_pylist() == [texts[number] for number in best]


def _words(text: str, statistics: tuple[int, ...] | None = None) -> WordOrder:
    return WordOrder(("body",), text, "none", (1.0,), statistics)


@settings(max_examples=40)
@given(UNITS, st.sampled_from(["red", "fox", "red fox"]))
def test_words_are_found_where_they_are_seen(
    kept: KeptSegments, units: list[list[Row]], text: str
) -> None:
    order = IndexOrder(T, _words(text), ("id", "body"), ("id",), None, 100, ("p",))
    found = searching.answered(order, _share(units), kept)
    expected = {
        number
        for number, row in enumerate(row for rows in units for row in rows)
        if row[3] and any(word in (WORDS[row[2]] or "").split() for word in text.split())
    }
    assert set(found.column(0).to_pylist()) == expected
    scores = found.column(found.num_columns - 1).to_pylist()
    assert scores == sorted(scores, reverse=True) and all(score > 0 for score in scores)


@settings(max_examples=12)
@given(UNITS, UNITS)
def test_shares_with_the_numbers_of_all_score_as_one(
    kept: KeptSegments, one: list[list[Row]], other: list[list[Row]]
) -> None:
    """Scores depend on how often words occur in the whole table, not in a share."""
    counting = IndexOrder(T, _words("red fox"), limit=0, pieces=("p",))
    counted = [_numbers(searching.answered(counting, _share(part), kept)) for part in (one, other)]
    both = tuple(int(n) for n in np.sum(np.array(counted), axis=0))
    assert both == tuple(_numbers(searching.answered(counting, _share([*one, *other]), kept)))

    def scored(units: list[list[Row]]) -> list[float]:
        order = IndexOrder(T, _words("red fox", both), ("id",), (), None, 100, ("p",))
        found = searching.answered(order, _share(units), kept)
        values: list[float] = found.column(found.num_columns - 1).to_pylist()
        return values

    assert sorted([*scored(one), *scored(other)]) == pytest.approx(sorted(scored([*one, *other])))


def _numbers(batch: pa.RecordBatch) -> list[int]:
    (numbers,) = batch.column(0).to_pylist()
    return list(numbers)


@pytest.mark.parametrize("limit", [5, 31, 33, 150, 500])
def test_many_rows_of_several_units_come_in_their_order(kept: KeptSegments, limit: int) -> None:
    ranks = [0, 1, 2, None]
    units = [
        [(ranks[n % 4], 0, n % 6, True) for n in range(start, start + 200)]
        for start in (0, 200, 400)
    ]
    by = VectorOrder("v", np.array([1, 0], np.float32).tobytes(), "dot", 1.0)
    order = IndexOrder(T, by, ("id", "body"), ("rank", "id"), None, limit, ("p",))
    found = searching.answered(order, _share(units), kept)
    expected = sorted(range(600), key=lambda n: (n % 4, n))[:limit]
    assert found.column(0).to_pylist() == expected
    assert found.column(1).to_pylist() == [WORDS[n % 6] for n in expected]
    assert found.column(2).to_pylist() == [ranks[n % 4] for n in expected]


@pytest.mark.parametrize(
    "by",
    [
        VectorOrder("nothing", b"\0" * 8),
        VectorOrder("v", b"\0\0\x80?" * 2, "angle"),
        WordOrder(("body", "nothing"), "red", "none", (1.0, 1.0)),
    ],
)
def test_what_no_index_answers_is_left_to_the_statement(
    kept: KeptSegments, by: VectorOrder | WordOrder
) -> None:
    order = IndexOrder(T, by, ("id",), limit=5, pieces=("p",))
    with pytest.raises(NotDistributableError, match="no index of"):
        searching.answered(order, _share([[(0, 0, 0, True)]]), kept)


def test_an_answer_without_rows_has_its_columns(kept: KeptSegments) -> None:
    by = VectorOrder("v", np.array([1, 0], np.float32).tobytes())
    order = IndexOrder(T, by, ("id", "body"), ("rank",), None, 5, None)
    for units in ([], [[(0, 0, 0, False)]]):
        found = searching.answered(order, _share(units), kept)
        assert found.num_rows == 0
        assert found.schema.names == ["id", "body", "score"]
        assert found.schema.types == [pa.int64(), pa.string_view(), pa.float64()]
