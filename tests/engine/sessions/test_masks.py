"""Filters of searches over rows in memory."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caraway_core.errors import NotDistributableError
from caraway_core.ids import TableName
from caraway_engine import known_faults
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
    found, _ = rows.passing(masks.context(EngineSettings(2)), where)
    return list(np.flatnonzero(found))


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


def test_a_filter_is_evaluated_once_unless_it_depends_on_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned: list[str] = []
    plan = known_faults.planned

    def counted(context: Any, sql: str, *others: Any, **named: Any) -> Any:
        planned.append(sql)
        return plan(context, sql, *others, **named)

    monkeypatch.setattr(known_faults, "planned", counted)
    rows = RowFilter(T, list(units.of_chunk(T, BATCHES[0].schema, Chunk(BATCHES))))
    context = masks.context(EngineSettings(2))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: rows.passing(context, "(k > 3)"), range(8)))
    assert all(list(each) == [False] * 4 + [True] * 2 for each, _ in found)
    assert not any(is_volatile for _, is_volatile in found)
    assert len(planned) == 1
    for _ in range(2):
        passes, is_volatile = rows.passing(context, "(now() > TIMESTAMP '2020-01-01')")
        assert passes.all() and is_volatile
    assert len(planned) == 3
    for n in range(40):
        assert rows.passing(context, f"(k = {n})")[0].sum() == (n < 6)
    assert len(planned) == 43
    assert rows.passing(context, "(k > 3)")[0].sum() == 2  # It was forgotten.
    assert len(planned) == 44


def test_required_fields_of_null_structs_are_null() -> None:
    required = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    batch = pa.record_batch({"k": [1, 2], "s": pa.array([{"a": 1}, None], required)})
    rows = RowFilter(T, list(units.of_chunk(T, batch.schema, Chunk((batch,)))))
    found, _ = rows.passing(masks.context(EngineSettings(2)), "(s['a'] IS NULL)")
    assert found.tolist() == [False, True]
