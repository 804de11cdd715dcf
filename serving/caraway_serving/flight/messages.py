"""Batches as messages that every Flight client can take."""

from collections.abc import Iterator

import pyarrow as pa

_MOST_BYTES = 1280 * 1024
"""Many clients refuse messages of more than 4 MiB unless they are told otherwise. And pyarrow takes
twice as much time for messages of 10 MiB as for messages of 1 MiB, whose memory is used again."""


def cut(
    batch: pa.RecordBatch, schema: pa.Schema, most_bytes: int = _MOST_BYTES
) -> Iterator[pa.Table]:
    """Divide a batch into messages of the schema that was announced; `most_bytes` may be less.

    Yields a table, of which Arrow sends each batch as a message without a step in Python, or
    nothing if there are no rows. Of a batch Arrow would not send the dictionaries.
    """
    if batch.schema != schema:
        batch = batch.cast(schema)
    most_bytes = min(most_bytes, _MOST_BYTES)
    rows = max(1, batch.num_rows * most_bytes // max(batch.nbytes, 1))
    starts = range(0, batch.num_rows, rows)
    if starts:
        yield pa.Table.from_batches([batch.slice(start, rows) for start in starts])
