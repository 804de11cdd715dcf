"""The columns of a dataset `from: memory:store`, in which models keep what they learn."""

import pyarrow as pa

MEMORY_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("value", pa.string()),
        ("created_by", pa.string()),
        ("created_at", pa.timestamp("us", "UTC")),
    ]
)
