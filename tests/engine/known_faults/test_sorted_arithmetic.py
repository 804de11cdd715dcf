"""Sorts by integer arithmetic, which is guarded against overflow, over files in two partitions.

The engine fails to plan a sort by an expression that compares computed numbers, as guards do.
"""

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from tests.differential.asking import Runner

_IDS = "FROM floats WHERE id < 6"
# The ids are 0 to 5.
SORTED: dict[str, list[int]] = {
    f"SELECT id {_IDS} ORDER BY id * id DESC": [5, 4, 3, 2, 1, 0],
    f"SELECT id {_IDS} ORDER BY (id - 3) * (id - 3), id": [3, 2, 4, 1, 5, 0],
    f"SELECT id {_IDS} ORDER BY (id - 3) * (id - 3) + (id - 2) * (id - 2), id": [2, 3, 1, 4, 0, 5],
    f"SELECT id {_IDS} ORDER BY abs(id * id), id": [0, 1, 2, 3, 4, 5],
    f"SELECT id {_IDS} ORDER BY id * id * id DESC LIMIT 2": [5, 4],
    f"SELECT id {_IDS} ORDER BY abs(id) + id DESC LIMIT 1": [5],
    f"SELECT id {_IDS} ORDER BY -(id * id) LIMIT 2": [5, 4],
    f"SELECT id AS x {_IDS} AND id * id > 4 ORDER BY id * id": [3, 4, 5],
    f"SELECT row_number() OVER (ORDER BY id * id) {_IDS} ORDER BY 1": [1, 2, 3, 4, 5, 6],
    f"SELECT count(*) OVER (PARTITION BY (id - 3) * (id - 3)) {_IDS} ORDER BY 1": [
        1, 1, 2, 2, 2, 2,
    ],
    f"SELECT rank() OVER w {_IDS} WINDOW w AS (PARTITION BY id * 0 ORDER BY id * -7) ORDER BY 1": [
        1, 2, 3, 4, 5, 6,
    ],
    f"SELECT id * id {_IDS} GROUP BY id * id ORDER BY id * id LIMIT 3": [0, 1, 4],
}  # fmt: skip


@pytest.mark.parametrize("sql", SORTED)
def test_rows_are_sorted_by_what_is_computed(sql: str, runner: Runner) -> None:
    answer = runner.outcome(sql)
    assert isinstance(answer, pa.Table), answer
    assert answer.column(0).to_pylist() == SORTED[sql]


def test_a_key_that_is_too_large_is_refused(runner: Runner) -> None:
    answer = runner.outcome("SELECT id FROM floats ORDER BY id * 9223372036854775807")
    assert isinstance(answer, InvalidQueryError) and "does not fit the type BIGINT" in str(answer)


def test_a_comparison_of_what_is_computed_is_sorted_by_or_says_how(runner: Runner) -> None:
    # A cluster sorts each part alone, where the engine requires no order.
    answer = runner.outcome(f"SELECT id {_IDS} ORDER BY id * id > 4, id")
    if isinstance(answer, InvalidQueryError):
        assert "column of a subquery" in str(answer)
        answer = runner.outcome(
            f"SELECT id FROM (SELECT id, id * id > 4 AS k {_IDS}) ORDER BY k, id"
        )
    assert isinstance(answer, pa.Table), answer
    assert answer.column(0).to_pylist() == [0, 1, 2, 3, 4, 5]
