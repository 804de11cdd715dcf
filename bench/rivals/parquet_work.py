"""Reads the statistics of Parquet files with pyarrow, or writes rows as files.

Arguments: `list FOLDER`, or `write FILE`, with the rows to write. It says "ready", does the work
for each line on standard input, and says how many seconds that took.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

_THREADS = 2
_FILE_ROWS = 1_000_000


def main(work: str, place: str) -> None:
    """Work for each line."""
    done = _listing(Path(place)) if work == "list" else _writing(pq.read_table(place))
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        done()
        print(time.perf_counter() - began, flush=True)


def _listing(folder: Path) -> Callable[[], object]:
    def read() -> int:
        count = 0
        for file in ds.dataset(folder, format="parquet").get_fragments():
            file.ensure_complete_metadata()
            count += sum(len(group.statistics) for group in file.row_groups)
        return count

    return read


def _writing(rows: pa.Table) -> Callable[[], object]:
    def write() -> None:
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_THREADS) as pool:
            starts = range(0, rows.num_rows, _FILE_ROWS)
            list(pool.map(lambda start: pq.write_table(
                rows.slice(start, _FILE_ROWS), f"{folder}/{start}.parquet"), starts))  # fmt: skip

    return write


if __name__ == "__main__":
    main(*sys.argv[1:])
