"""Selects rows of a batch. Arrow's kernels do this, but not for columns of every type.

String and binary views are selected as 16-byte values. The data that they point to is shared with
the original batch.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

_VIEW_BYTES = 16
_Choose = Callable[[pa.Array], pa.Array]


def taken(batch: pa.RecordBatch, rows: pa.Array) -> pa.RecordBatch:
    """Return the rows with these numbers, in this order."""
    columns = [take(column, rows) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def filtered(batch: pa.RecordBatch, is_chosen: pa.Array) -> pa.RecordBatch:
    """Return the rows for which the mask is true."""
    columns = [
        _chosen(column, lambda each: each.filter(is_chosen), lambda: _runs(is_chosen))
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def take(column: pa.Array, rows: pa.Array) -> pa.Array:
    """Return the values with these numbers, in this order."""
    return _chosen(
        column, lambda each: each.take(rows), lambda: [(row, 1) for row in rows.to_pylist()]
    )


def size_bytes(batch: pa.RecordBatch) -> int:
    """Return the size of selected rows beyond what they share with the original batch."""
    return sum(
        _VIEW_BYTES * len(column) if _is_view(column.type) else column.nbytes
        for column in batch.columns
    )


def _chosen(
    column: pa.Array, choose: _Choose, runs: Callable[[], Sequence[tuple[int, int]]]
) -> pa.Array:
    if _is_view(column.type):
        validity, views, *texts = column.buffers()
        fixed = pa.Array.from_buffers(
            pa.binary(_VIEW_BYTES), len(column), [validity, views], offset=column.offset
        )
        found = choose(fixed)
        # A short array may be a slice of the original, so copy it.
        if found.offset:
            found = pa.concat_arrays([found, found.slice(0, 0)])
        return pa.Array.from_buffers(column.type, len(found), [*found.buffers(), *texts])
    if _is_plain(column.type):
        return choose(column)
    parts = [column.slice(start, length) for start, length in runs()]
    return pa.concat_arrays(parts or [column.slice(0, 0)])


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether Arrow's kernels support a type: no views, nested views or run-end encoding."""
    if _is_view(kind) or pa.types.is_run_end_encoded(kind):
        return False
    return all(_is_plain(each) for each in _inner(kind))


def _inner(kind: pa.DataType) -> Iterator[pa.DataType]:
    if pa.types.is_dictionary(kind):
        yield kind.value_type
    elif pa.types.is_nested(kind):
        yield from (kind.field(number).type for number in range(kind.num_fields))


def _runs(is_chosen: pa.Array) -> list[tuple[int, int]]:
    left_out = pc.indices_nonzero(pc.invert(is_chosen)).to_pylist()
    ends = [-1, *left_out, len(is_chosen)]
    return [(end + 1, start - end - 1) for end, start in pairwise(ends) if start > end + 1]
