"""Rows with keys, in pieces of a table and its log."""

from collections.abc import Sequence

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_engine.rows.keyed import KeyIndex
from caraway_engine.rows.pieces import RowRange

T = TableName("sales.t")
SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.float64())])
Row = tuple[int | None, str | None, float]


def pieces(*chunks: Sequence[Row]) -> list[RowRange]:
    made, first = [], 0
    for rows in chunks:
        columns = [pa.array([row[at] for row in rows], field.type)
                   for at, field in enumerate(SCHEMA)]  # fmt: skip
        batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        made.append(RowRange(batch, first, [(0, len(rows))], None))
        first += len(rows)
    return made


def index(of: Sequence[RowRange], *columns: str) -> KeyIndex:
    return KeyIndex.over([[each.batch.column(name) for name in columns] for each in of])


A, B = (1, "a", 1.0), (1, "b", 2.0)
