"""Rows of a batch as tuples."""

from typing import Any

import pyarrow as pa


def tuples(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Rows by position: a fragment may name two columns alike."""
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
