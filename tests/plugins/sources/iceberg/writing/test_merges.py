"""Clauses of a MERGE may ask other tables about each row."""

from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.ids import TableName
from tests.kit.engine import memory, rows, session
from tests.plugins.sources.iceberg.writing.written_tables import create

TABLE = pa.table({"id": pa.array([1, 3], pa.int64()), "v": ["a", "c"]})
MATCHED = "WHEN MATCHED"
MOST = "(SELECT CAST(max(n) AS VARCHAR) FROM u WHERE uk = s.k)"


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        (
            f"{MATCHED} THEN UPDATE SET v = {MOST} WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.w)",
            {1: "6", 2: "y", 3: "c"},
        ),
        (f"WHEN NOT MATCHED THEN INSERT VALUES (s.k, {MOST})", {1: "a", 2: None, 3: "c"}),
        (f"{MATCHED} AND {MOST} > '5' THEN UPDATE SET v = 'z'", {1: "z", 3: "c"}),
        (f"{MATCHED} AND {MOST} > '6' THEN UPDATE SET v = 'z'", {1: "a", 3: "c"}),
        (
            f"{MATCHED} AND EXISTS (SELECT 1 FROM u WHERE uk = s.k) THEN UPDATE SET v = 'z'",
            {1: "z", 3: "c"},
        ),
        (f"{MATCHED} AND s.k NOT IN (SELECT uk FROM u) THEN DELETE", {1: "a", 3: "c"}),
        (f"{MATCHED} AND s.k IN (SELECT uk FROM u) THEN DELETE", {3: "c"}),
        (
            "WHEN NOT MATCHED BY SOURCE AND (SELECT count(*) FROM u WHERE uk = t.id) > 0 "
            "THEN DELETE",
            {1: "a"},
        ),
    ],
)
async def test_each_row_has_its_own_answer(
    tmp_path: Path, clauses: str, expected: dict[int, str | None]
) -> None:
    written = create(tmp_path, TABLE.schema)
    written.insert(TABLE)
    others = {"s": memory(k=[1, 2], w=["x", "y"]), "u": memory(uk=[1, 1, 3], n=[5, 6, 7])}
    over = session({"t": written.spec, **others})
    sql = f"MERGE INTO t USING s ON t.id = s.k {clauses}"
    await rows(over, sql, writable=frozenset({TableName("t")}))
    assert {each["id"]: each["v"] for each in written.own_rows()} == expected
