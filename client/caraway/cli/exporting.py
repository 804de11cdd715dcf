"""Writes the rows of a statement in constant memory, with a line of progress on a terminal."""

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from caraway.rows.formats import Format
from caraway_core.concurrency.clocks import SecondsClock

if TYPE_CHECKING:
    import pyarrow as pa

    from caraway.client import Client
    from caraway.rows.readers import RecordReader

_STEP_S = 0.2


def export(
    client: "Client",
    statement: str,
    parameters: Mapping[str, object],
    format: Format,
    to: BinaryIO,
    output: Path | None,
) -> None:
    """Run a statement and write its rows. Arrow brings them, over Flight if there is a server."""
    # pyarrow takes 0.3 s to import, which other commands would pay as well.
    from caraway.rows import rendering

    write = {
        Format.ARROW: rendering.write_arrow,
        Format.PARQUET: rendering.write_parquet,
        Format.CSV: rendering.write_csv,
        Format.NDJSON: rendering.write_ndjson,
        Format.JSON: rendering.write_json,
        Format.TABLE: rendering.write_table,
    }[format]
    with client.reader(statement, dict(parameters) or None) as reader:
        # On the terminal that shows the rows, a line of progress would be in their way.
        is_shown = output is not None and sys.stderr.isatty()
        batches = watched(reader, sys.stderr, time.monotonic) if is_shown else iter(reader)
        write(reader.schema, batches, to)
    to.flush()


def watched(
    reader: "RecordReader", stderr: TextIO, clock: SecondsClock
) -> Iterator["pa.RecordBatch"]:
    """Yield the batches, and print how many rows and bytes there were."""
    started_at = shown_at = clock()
    size = 0
    try:
        for batch in reader:
            yield batch
            size += batch.nbytes
            if (now := clock()) - shown_at >= _STEP_S:
                shown_at = now
                print(f"\r\033[K{_amount(reader, size, now - started_at)}", end="", file=stderr)
                stderr.flush()
    finally:
        print(f"\r\033[K{_amount(reader, size, clock() - started_at)}", file=stderr, flush=True)


# Any: a reader or whatever counts rows.
def _amount(reader: Any, size: int, elapsed_s: float) -> str:
    rate = reader.rows_read / elapsed_s if elapsed_s else 0.0
    return f"{reader.rows_read:,} rows, {size / 1e6:,.1f} MB, {rate:,.0f} rows/s"
