"""Batches as messages that every Flight client can take."""

from collections.abc import Iterator

import pyarrow as pa

# Many clients refuse messages of more than 4 MiB unless they are told otherwise.
_MOST_BYTES = 2 * 1024 * 1024


def cut(
    batch: pa.RecordBatch, schema: pa.Schema, most_bytes: int = _MOST_BYTES
) -> Iterator[pa.Table]:
    """Divide a batch into messages of the schema that was announced; `most_bytes` may be less.

    They are tables because Arrow sends the dictionaries of tables along, but not of batches.
    """
    if batch.schema != schema:
        batch = batch.cast(schema)
    most_bytes = min(most_bytes, _MOST_BYTES)
    rows = max(1, batch.num_rows * most_bytes // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, rows):
        yield pa.Table.from_batches([batch.slice(start, rows)])
