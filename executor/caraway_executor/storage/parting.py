"""Partitions the rows of a stored result, batch by batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.errors import ExecutionError
from caraway_core.partitions import hashing, naming
from caraway_core.partitions.keys import BucketKey, ByExpression, PartitionBy, Term
from caraway_core.partitions.naming import Value, Values


@dataclass(frozen=True, slots=True)
class _Coded:
    """A code for each row of a batch, and the partition values behind each code."""

    codes: pa.Array
    values: Sequence[Values]


class Parting:
    """Partitions rows by terms. The last columns of the rows are those of expressions.

    Raises:
        ExecutionError: a column is missing, or has a type that cannot partition rows.
    """

    def __init__(self, cut: PartitionBy, schema: pa.Schema) -> None:
        self._terms = cut.terms
        expressions = [term for term in cut.terms if isinstance(term, ByExpression)]
        self._width = len(schema) - len(expressions)
        after = iter(range(self._width, len(schema)))
        if self._width < 1:
            raise _fault("its last columns are not those of the partition expressions")
        self._columns = [self._column(term, schema, after) for term in cut.terms]

    def parts(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows of each partition as a separate batch, in order."""
        coded = self._combined(rows)
        stored = pa.RecordBatch.from_arrays(
            rows.columns[: self._width], schema=_first(rows.schema, self._width)
        )
        if len(coded.values) == 1:
            yield naming.name_of(coded.values[0]), stored
            return
        # Sorting is stable, so the rows of a partition stay in order.
        order = pc.sort_indices(coded.codes)
        counts = pc.value_counts(coded.codes.take(order)).to_pylist()
        start = 0
        for code, count in ((each["values"], each["counts"]) for each in counts):
            # Take copies: slices would keep the whole batch in memory.
            part = stored.take(order.slice(start, count))
            yield naming.name_of(coded.values[code]), part
            start += count

    def _column(self, term: Term, schema: pa.Schema, after: Iterator[int]) -> int:
        if isinstance(term, ByExpression):
            return next(after)
        found = schema.get_all_field_indices(term.column)
        found = [index for index in found if index < self._width]
        if len(found) != 1:
            raise _fault(f"it has {len(found) or 'no'} columns '{term.column}'")
        return int(found[0])

    def _combined(self, rows: pa.RecordBatch) -> _Coded:
        """Encode rows by all terms together."""
        try:
            terms = [
                _coded(term, rows.column(index))
                for term, index in zip(self._terms, self._columns, strict=True)
            ]
        except ValueError as exc:
            raise _fault(str(exc)) from exc
        together = terms[0]
        for each in terms[1:]:
            together = _both(together, each)
        return together


def _both(some: _Coded, others: _Coded) -> _Coded:
    """Encode pairs of values. Codes stay below the row count, so any number of terms fits."""
    count = max(1, len(others.values))
    pairs = pc.add(pc.multiply(some.codes, pa.scalar(count, pa.int64())), others.codes)
    encoded = pairs.dictionary_encode()
    both = [divmod(pair, count) for pair in encoded.dictionary.to_pylist()]
    values = [(*some.values[first], *others.values[second]) for first, second in both]
    return _Coded(encoded.indices.cast(pa.int64()), values)


def _coded(term: Term, column: pa.Array) -> _Coded:
    if isinstance(term, BucketKey):
        return _encoded(hashing.bucket_of(column, term.count))
    return _encoded(column)


def _encoded(column: pa.Array) -> _Coded:
    encoded = column if pa.types.is_dictionary(column.type) else _flat(column).dictionary_encode()
    values = naming.plain_values(encoded.dictionary)
    codes = encoded.indices.cast(pa.int64())
    if codes.null_count:
        codes = codes.fill_null(len(values))
        values = [*values, None]
    # Several codes may have one name: both zeros, or duplicates in a dictionary.
    first: dict[Value, int] = {}
    same = [first.setdefault(value, index) for index, value in enumerate(values)]
    if len(first) < len(values):
        codes = pa.array(same, pa.int64()).take(codes)
    return _Coded(codes, [(value,) for value in values])


def _flat(column: pa.Array) -> pa.Array:
    """Cast a column to a type that the kernels can encode."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.binary())
    return column


def _first(schema: pa.Schema, count: int) -> pa.Schema:
    return pa.schema([schema.field(index) for index in range(count)])


def _fault(cause: str) -> ExecutionError:
    return ExecutionError(f"the result cannot be stored by partition: {cause}")
