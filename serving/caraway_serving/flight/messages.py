"""Batches as messages that every Flight client can take."""

from collections.abc import Iterator

import pyarrow as pa

_MOST_BYTES = 1000 * 1024
"""Many clients refuse messages of more than 4 MiB by default. And pyarrow's
client needs up to twice the time for larger messages than 1 MiB: it uses no memory again."""


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
    count = -(-batch.nbytes // most_bytes) or 1
    rows = max(1, batch.num_rows // count)
    starts = range(0, batch.num_rows, rows)
    if starts:
        yield pa.Table.from_batches([batch.slice(start, rows) for start in starts])
