from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from caraway_assist.search.merging import merged
from caraway_assist.search.searchable import SearchableTable
from caraway_assist.search.tables import RankedTable, Ranking
from caraway_core.ids import TableName
from caraway_core.manifest.values.search_columns import KeywordSettings, VectorSettings
from caraway_core.sqltext.searching import SearchMethod

K = 60


def ranked(ids: Sequence[Any], scores: Sequence[float] = (), kind: Any = None) -> RankedTable:
    scores = scores or [1.0 / (place + 1) for place in range(len(ids))]
    rows = pa.table({"id": pa.array(ids, kind), "score": pa.array(scores, pa.float64())})
    table = SearchableTable(
        TableName("docs"), rows.schema, (), (), VectorSettings(), KeywordSettings(), ("id",)
    )
    return RankedTable(Ranking(table, SearchMethod.TEXT, ("id",)), rows, None, True)


def ids(rankings: Sequence[RankedTable], *, keeps_scores: bool = False) -> list[Any]:
    rows = merged(rankings, ("id",), 100, keeps_scores=keeps_scores)
    firsts = [row.places[0] for row in rows]
    return [rankings[each.ranking].rows.column("id")[each.row].as_py() for each in firsts]


def test_ranks_of_a_row_are_summed() -> None:
    one, two = ranked([1, 2, 3]), ranked([3, 4])
    rows = merged([one, two], ("id",), 100, keeps_scores=False)
    assert ids([one, two]) == [3, 1, 2, 4]
    assert rows[0].score == pytest.approx(1 / (K + 3) + 1 / (K + 1))
    assert [(each.ranking, each.row) for each in rows[0].places] == [(0, 2), (1, 0)]


def test_no_more_rows_are_merged_than_are_wanted() -> None:
    one, two = ranked([1, 2, 3]), ranked([3, 4])
    for limit in range(5):
        every = merged([one, two], ("id",), 100, keeps_scores=False)
        assert merged([one, two], ("id",), limit, keeps_scores=False) == every[:limit]
    assert len(merged([one], ("id",), 2, keeps_scores=True)) == 2


def test_one_ranking_may_keep_its_scores() -> None:
    rows = merged([ranked(["b", "a"], [0.5, 0.25])], ("id",), 100, keeps_scores=True)
    assert [row.score for row in rows] == [0.5, 0.25]


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("us"), pa.duration("ns")])
def test_keys_may_be_times_that_python_has_not(kind: pa.DataType) -> None:
    late, early = 2**61 + 1, 2**61
    rankings = [ranked([each], kind=kind) for each in (late, early)]
    rows = merged(rankings, ("id",), 100, keeps_scores=False)
    firsts = [rankings[row.places[0].ranking].rows.column("id") for row in rows]
    assert [each.cast(pa.int64()).to_pylist() for each in firsts] == [[early], [late]]


def test_rows_of_one_key_are_one_row() -> None:
    rows = merged([ranked([7, 8, 7], [3, 2, 1])], ("id",), 100, keeps_scores=True)
    assert [row.score for row in rows] == [3, 2]


@pytest.mark.parametrize(
    ("first", "second", "wanted", "kind"),
    [
        ([2, None], [1, 3], [1, 2, 3, None], pa.int64()),
        (["b", ""], ["a", None], ["a", "b", "", None], pa.string()),
        ([[2], None], [[1], [3]], [[1], [2], [3], None], pa.list_(pa.int64())),
        ([b"b"], [b"a"], [b"a", b"b"], pa.binary()),
    ],
)
def test_rows_of_one_score_are_in_the_order_of_the_key(
    first: list[Any], second: list[Any], wanted: list[Any], kind: pa.DataType
) -> None:
    one, two = ranked(first, kind=kind), ranked(second, kind=kind)
    assert ids([one, two]) == ids([two, one]) == wanted


def test_not_a_number_is_a_key_like_others() -> None:
    nan = float("nan")
    one, two = ranked([nan, 1.0], kind=pa.float64()), ranked([2.0, nan], kind=pa.float64())
    rows = merged([one, two], ("id",), 100, keeps_scores=False)
    assert len(rows) == 3 and len(rows[0].places) == 2
    assert ids([ranked([nan]), ranked([1.0])])[0] == 1.0


def test_without_a_key_all_columns_tell_rows_apart() -> None:
    assert len(merged([ranked([1, 1, 2])], (), 100, keeps_scores=True)) == 2
