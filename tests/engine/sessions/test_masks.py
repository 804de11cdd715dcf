"""Filters of searches over rows in memory."""

import pyarrow as pa
import pytest

from caraway_core.errors import NotDistributableError
from caraway_core.ids import TableName
from caraway_engine.execution.settings import EngineSettings
from caraway_engine.rows import units
from caraway_engine.rows.held import Chunk
from caraway_engine.sessions import masks
from caraway_engine.sessions.masks import RowFilter

BATCHES = tuple(
    pa.record_batch({"k": pa.array(range(n, n + 3)), "Name": ["a", None, "é"]}) for n in (0, 3)
)
T = TableName("sales.t")


def passing(where: str) -> list[int]:
    chunk = Chunk(BATCHES)
    rows = RowFilter(T, list(units.of_chunk(T, BATCHES[0].schema, chunk)))
    found = rows.passing(masks.context(EngineSettings(2)), where)
    return sorted(found.to_pylist())


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("(k > 1 AND t.k < 4)", [2, 3]),
        ('("Name" IS NULL OR "Name" = \'é\' -- so\n)', [1, 2, 4, 5]),
        ("(EXISTS (SELECT 1))", [0, 1, 2, 3, 4, 5]),
        ("(false)", []),
    ],
)
def test_rows_that_pass_are_numbered_over_all_batches(where: str, rows: list[int]) -> None:
    assert passing(where) == rows


@pytest.mark.parametrize(
    "where",
    [
        "(k IN (SELECT k FROM t))",
        "(k IN (SELECT k FROM sales.t))",
        "(EXISTS (SELECT 1 FROM information_schema.tables))",
        "(row_number > 1)",
        "(k / 0 = 1)",
        "(embed('a', 'm') IS NULL)",
        f"({'(' * 200}true{')' * 200})",
        "(k)",
        "(k = 1",
    ],
)
def test_other_filters_are_left_to_statements(where: str) -> None:
    with pytest.raises(NotDistributableError, match="the filter of a search: "):
        passing(where)
