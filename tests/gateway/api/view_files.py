"""The files below the views of a runtime."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write(folder: Path, rows: int) -> None:
    table = pa.table({"id": range(rows), "v": [f"v{each % 5}" for each in range(rows)]})
    pq.write_table(table, folder / "orders.parquet")
