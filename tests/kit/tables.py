"""Makes tables over files that a test writes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from caraway_core.tables import FileScan, FilesTable


def parquet(folder: Path, rows: pa.Table, count: int) -> FilesTable:
    """Write rows to a number of files in a folder."""
    folder.mkdir()
    size = -(-rows.num_rows // count)
    for number in range(count):
        pq.write_table(rows.slice(number * size, size), folder / f"{number}.parquet")
    paths = tuple(sorted(map(str, folder.glob("*.parquet"))))
    total = sum(Path(path).stat().st_size for path in paths)
    scan = FileScan("parquet", paths, rows.schema, ".parquet", size_bytes=total, file_count=count)
    return FilesTable(rows.schema, (scan,))
