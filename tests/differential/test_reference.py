"""The reference is correct where DataFusion once gave wrong answers on one node."""

from tests.differential.asking import Runner
from tests.differential.corpus_cases import answered


def test_min_and_max_see_the_row_groups_in_which_another_column_is_null(
    small_reference: Runner,
) -> None:
    # Its dynamic filter forgets columns without a bound (apache/datafusion#25147, #24816). A race
    # decides which rows are lost, so one run is not enough.
    sql = "SELECT min(i8) AS a, min(f32) AS b, max(f64) AS c FROM numbers"
    for _ in range(40):
        answer = answered(small_reference.outcome(sql)).to_pylist()
        assert answer == [{"a": -128, "b": 0.25, "c": 2.375}]
