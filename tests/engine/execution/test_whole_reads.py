"""Statements that select columns of a table in memory: large batches, the same rows."""

from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_engine.execution.settings import EngineSettings
from caraway_executor.statements.local import LocalExecutor
from tests.kit.engine import snapshot
from tests.kit.stored import stored

COUNT = 200_000
ROWS = pa.table({"n": list(range(COUNT)), "s": [str(number) for number in range(COUNT)]})


@pytest.mark.parametrize(
    ("sql", "largest", "rows"),
    [
        ("SELECT * FROM t", 65_536, ROWS),
        ("SELECT s FROM t", 65_536, ROWS.select(["s"])),
        ("SELECT n + 1 AS n FROM t WHERE n < 9000", 8_192, pa.table({"n": range(1, 9_001)})),
        ("SELECT count(*) AS n FROM t", 1, pa.table({"n": [COUNT]})),
    ],
)
async def test_batches_are_large_where_the_engine_has_no_work(
    tmp_path: Path, sql: str, largest: int, rows: pa.Table
) -> None:
    executor = LocalExecutor(EngineSettings(2))
    executor.install(snapshot({"t": await stored(tmp_path, ROWS)}))
    stream = await executor.execute(new_query_id(), Statement(sql, {}))
    batches = [batch async for batch in stream]
    executor.close()
    assert max(batch.num_rows for batch in batches) == largest
    found = pa.Table.from_batches(batches, stream.schema).cast(rows.schema)
    by = rows.column_names[0]
    assert found.sort_by(by).equals(rows.sort_by(by))
