"""Makes tables over files that a test writes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from caraway_core.tables import FileScan, FilesTable
from caraway_core.tables.ranges import ColumnRange, range_of


def parquet(folder: Path, rows: pa.Table, count: int) -> FilesTable:
    """Write rows to a number of files in a folder, of which the rows and ranges are known."""
    folder.mkdir()
    size = -(-rows.num_rows // count)
    for number in range(count):
        pq.write_table(rows.slice(number * size, size), folder / f"{number}.parquet")
    paths = tuple(sorted(map(str, folder.glob("*.parquet"))))
    total = sum(Path(path).stat().st_size for path in paths)
    each_column = (total // len(rows.schema),) * len(rows.schema)
    scan = FileScan(
        "parquet", paths, rows.schema, ".parquet", size_bytes=total, file_count=count,
        column_bytes=each_column,
    )  # fmt: skip
    known = {name: _range(rows[name]) for name in rows.column_names}
    ranges = tuple((name, each) for name, each in known.items() if each is not None)
    return FilesTable(rows.schema, (scan,), rows.num_rows, ranges=ranges)


def _range(column: pa.ChunkedArray) -> ColumnRange | None:
    if not pa.types.is_integer(column.type):
        return None
    found = pc.min_max(column).as_py()
    return range_of(found["min"], found["max"])
