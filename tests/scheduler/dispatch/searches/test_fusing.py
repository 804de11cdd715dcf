import math
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import TableName
from caraway_core.sqltext.searching import SearchMethod, TableSearch
from caraway_core.statements.searches import FusedSearches, RecencyDecay, WeightedSearch
from caraway_scheduler.dispatch.searches import fusing

SEARCH = TableSearch(TableName("docs"), "q", SearchMethod.TEXT)
SECONDS = pa.timestamp("s")


def _fused(
    *found: list[Any],
    weights: tuple[float, ...] = (1.0, 1.0),
    decay: RecencyDecay | None = None,
    key: tuple[str, ...] = ("id",),
    limit: int = 10,
    at: pa.DataType = SECONDS,
) -> dict[Any, float]:
    fusion = FusedSearches(
        tuple(WeightedSearch(SEARCH, weight) for weight in weights), key, decay=decay
    )
    tables = [pa.table({"id": pa.array(ids, pa.int64()), "at": _times(ids, at)}) for ids in found]
    rows = fusing.fused(fusion, tables, ["id"], limit, now_s=100.0)
    assert rows.schema.names == ["id", "fused_score"]
    return {row["id"]: row["fused_score"] for row in rows.to_pylist()}


def _times(ids: list[Any], kind: pa.DataType) -> pa.Array:
    made = pa.array(ids, pa.int64())
    return made if pa.types.is_integer(kind) else made.cast(SECONDS).cast(kind)


def test_ranks_are_fused() -> None:
    assert _fused([1, 2, 3], [3, 1]) == {
        1: 1 / 61 + 1 / 62,
        3: 1 / 63 + 1 / 61,
        2: 1 / 62,
    }
    assert list(_fused([1, 2, 3], [3, 1])) == [1, 3, 2]


def test_weights_multiply() -> None:
    assert _fused([1, 2], [2, 1], weights=(1.0, 3.0)) == {2: 1 / 62 + 3 / 61, 1: 1 / 61 + 3 / 62}


def test_ties_are_in_the_order_of_the_key() -> None:
    assert list(_fused([9, 4], [4, 9])) == [4, 9]
    assert list(_fused([9], [4])) == [4, 9]


def test_only_the_best_rows_are_returned() -> None:
    assert list(_fused([1, 2, 3], [4, 5], limit=2)) == [1, 4]
    assert _fused([], []) == {}


def test_a_key_counts_once_in_a_search_and_null_matches_nothing() -> None:
    assert _fused([1, 1, 2], []) == {1: 1 / 61, 2: 1 / 62}
    fusion = FusedSearches((WeightedSearch(SEARCH),) * 2, ("id",))
    rows = pa.table({"id": pa.array([None], pa.int64())})
    assert fusing.fused(fusion, [rows, rows], ["id"], 10, 0.0).num_rows == 2


def test_whole_rows_are_compared_where_there_is_no_key() -> None:
    rows = pa.table(
        {
            "id": [1, 2],
            "tags": [["a"], ["b"]],
            "ratio": [math.nan, None],
            "vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        }
    )
    fusion = FusedSearches((WeightedSearch(SEARCH),) * 2, tuple(rows.schema.names))
    fused = fusing.fused(fusion, [rows, rows], ["id"], 10, 0.0)
    assert fused.to_pylist() == [
        {"id": 1, "fused_score": 1 / 61 + 1 / 61},
        {"id": 2, "fused_score": 1 / 62 + 1 / 62},
    ]


@pytest.mark.parametrize("at", [SECONDS, pa.timestamp("ns", "Europe/Berlin")])
def test_old_rows_score_less(at: pa.DataType) -> None:
    decay = RecencyDecay("at", "linear", window_s=100.0)
    assert _fused([40, 0, 200], [], decay=decay, at=at) == {
        40: 0.4 * (1 / 61),
        200: 1 / 63,
        0: 0.0,
    }
    decay = RecencyDecay("at", "exponential", constant=0.5, scale_s=10.0)
    assert _fused([40], [], decay=decay, at=at) == {40: pytest.approx(math.exp(-3) / 61)}


def test_a_row_without_a_time_is_very_old() -> None:
    rows = pa.table({"id": [1], "at": pa.array([None], pa.date32())})
    fusion = FusedSearches((WeightedSearch(SEARCH),), ("id",), decay=RecencyDecay("at", "linear"))
    (row,) = fusing.fused(fusion, [rows], ["id"], 10, 1e9).to_pylist()
    assert row["fused_score"] == 0.0


def test_a_time_column_must_hold_times() -> None:
    with pytest.raises(InvalidQueryError, match="`time_column` 'at' is of type int64"):
        _fused([1], [], decay=RecencyDecay("at"), at=pa.int64())
