"""LIMIT and OFFSET of any size are planned."""

import pytest

from tests.engine.stages.planning import planned

MOST = 2**63 - 1


def test_tasks_leave_the_rows_that_may_be_needed() -> None:
    (reading,) = planned("SELECT id FROM facts ORDER BY id LIMIT 10 OFFSET 5").root.readings

    assert reading.top is not None
    assert reading.top.count == 15


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT id FROM facts LIMIT {MOST} OFFSET 5",
        f"SELECT id FROM facts ORDER BY id LIMIT {MOST} OFFSET 1",
    ],
)
def test_tasks_leave_all_rows_where_the_numbers_are_too_large(sql: str) -> None:
    (reading,) = planned(sql).root.readings

    assert reading.top is None
