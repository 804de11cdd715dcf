"""Parses the entries of a log once, for all partitions that apply them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from caraway_core.changes import OFFSET, OP, WITHOUT_KEY, Op, log_schema
from caraway_core.errors import ExecutionError
from caraway_core.ids import TableName
from caraway_core.partitions import hashing, naming
from caraway_core.partitions.keys import BucketKey
from caraway_core.tables import StoredTable
from caraway_engine.rows import keyed
from caraway_engine.rows.keyed import Key

LEAST_ROWS = 4096
"""Batches with fewer rows on average are put together."""
_WITH_ROWS = (Op.INSERT, Op.UPSERT, Op.KEEP)


@dataclass(frozen=True, slots=True, eq=False)
class EntryChanges:
    """The changes of a log entry, in order; `keys` and `hashes` are set for datasets with a key.

    `ops` has one operation for each row. There are several batches only if all changes insert rows.
    """

    batches: Sequence[pa.RecordBatch]
    ops: bytes
    offsets: Sequence[bytes | None] | None
    keys: Sequence[Key]
    hashes: pa.Array | None
    _by_partition: Mapping[str, Sequence[int]] | None

    @property
    def rows(self) -> pa.RecordBatch:
        """All rows in one batch."""
        return _together(self.batches, self.batches[0].schema)

    @property
    def size_bytes(self) -> int:
        """The size of the rows."""
        return sum(batch.nbytes for batch in self.batches)

    @property
    def only_inserts(self) -> bool:
        """True if all changes insert rows that need no look at other rows."""
        return self.ops.count(Op.INSERT) == len(self.ops)

    def changes_of(self, partition: str | None) -> Sequence[int]:
        """Return the changes that concern a partition, or all changes for None."""
        if partition is None or self._by_partition is None:
            return range(len(self.ops))
        return self._by_partition.get(partition, ())


def buckets(spec: StoredTable) -> tuple[str, ...] | None:
    """Return all partition names of a dataset that is divided into buckets, or None."""
    terms = [term for term in spec.cut.terms if isinstance(term, BucketKey)]
    if not terms or len(terms) < len(spec.cut.terms):
        return None
    return tuple(map(naming.name_of, product(*(range(term.count) for term in terms))))


def read(table: TableName, spec: StoredTable, batches: Sequence[pa.RecordBatch]) -> EntryChanges:
    """Parse the changes of a chunk.

    Raises:
        ExecutionError: they are not of this dataset, or lack a key or a value.
    """
    wanted = log_schema(spec.schema)
    for batch in batches:
        if batch.schema.types != wanted.types:
            raise _broken(table, "its column types differ from those of the dataset")
    named = [pa.RecordBatch.from_arrays(each.columns, schema=wanted) for each in batches]
    if _is_upload(spec, named):
        return _read_upload(table, spec, named)
    changes = _together(named, wanted)
    ops = _bytes(changes.column(OP))
    is_truncating = any(op in ops for op in WITHOUT_KEY)
    _check_values(table, spec, changes, ops)
    keys: Sequence[Key] = ()
    hashes: pa.Array | None = None
    if spec.keys and spec.keys.primary:
        columns = [changes.column(name) for name in spec.keys.primary]
        _check_keys(table, spec.keys.primary, columns, changes.column(OP))
        keys, hashes = keyed.keys(columns), keyed.hashes(columns)
    offsets = changes.column(OFFSET)
    rows = changes.select(range(len(spec.schema)))
    return EntryChanges(
        [rows],
        ops,
        offsets.to_pylist() if offsets.null_count < len(offsets) else None,
        keys,
        hashes,
        _parted(spec, changes, ops if is_truncating else ()),
    )


def _is_upload(spec: StoredTable, batches: Sequence[pa.RecordBatch]) -> bool:
    """Return whether rows can stay where they were read, because they are only added.

    Small batches are put together instead: each one adds cost to a scan.
    """
    if spec.keys is not None or buckets(spec) is not None or len(batches) < 2:
        return False
    is_large = sum(each.num_rows for each in batches) >= LEAST_ROWS * len(batches)
    return is_large and all(
        _bytes(each.column(OP)).count(Op.INSERT) == each.num_rows for each in batches
    )


def _read_upload(
    table: TableName, spec: StoredTable, batches: Sequence[pa.RecordBatch]
) -> EntryChanges:
    for batch in batches:
        _check_values(table, spec, batch, _bytes(batch.column(OP)))
    columns = range(len(spec.schema))
    ops = bytes([Op.INSERT]) * sum(each.num_rows for each in batches)
    return EntryChanges([each.select(columns) for each in batches], ops, None, (), None, None)


def _together(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return one batch of several; a single one is not copied."""
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _bytes(column: pa.Array) -> bytes:
    """Return the values of a column of small numbers; a million Python objects would be slow."""
    values = memoryview(column.buffers()[1] or b"")
    return values[column.offset : column.offset + len(column)].tobytes()


def _parted(
    spec: StoredTable, changes: pa.RecordBatch, ops: Sequence[int]
) -> Mapping[str, Sequence[int]] | None:
    """Group the changes by partition, if a column determines it. TRUNCATE applies to all.

    `ops` may be empty if there is no TRUNCATE.
    """
    names = buckets(spec)
    if names is None:
        return None
    number = pa.repeat(pa.scalar(0, pa.int32()), changes.num_rows)
    for term in spec.cut.terms:
        assert isinstance(term, BucketKey)
        found = hashing.bucket_of(changes.column(term.column), term.count)
        number = pc.add(pc.multiply(number, pa.scalar(term.count, pa.int32())), found)
    parted: dict[str, list[int]] = {}
    for row, partition in enumerate(number.to_pylist()):
        if ops and ops[row] in WITHOUT_KEY:
            for name in names:
                parted.setdefault(name, []).append(row)
        else:
            parted.setdefault(names[partition], []).append(row)
    return parted


def _check_values(table: TableName, spec: StoredTable, changes: pa.RecordBatch, ops: bytes) -> None:
    for number, field in enumerate(spec.schema):
        column = changes.column(number)
        if field.nullable or not column.null_count:
            continue
        for row in pc.indices_nonzero(column.is_null()).to_pylist():
            if ops[row] in _WITH_ROWS:
                raise _broken(
                    table, f"column '{field.name}' of a row is NULL, which is not allowed"
                )


def _check_keys(
    table: TableName, names: Sequence[str], columns: Sequence[pa.Array], ops: pa.Array
) -> None:
    for name, column in zip(names, columns, strict=True):
        if column.null_count:
            without = pa.array(sorted(map(int, WITHOUT_KEY)), pa.int8())
            has_key = pc.invert(pc.is_in(ops, value_set=without))
            if pc.any(pc.and_(column.is_null(), has_key)).as_py():
                raise _broken(table, f"column '{name}' of its primary key is NULL in a change")


def _broken(table: TableName, what: str) -> ExecutionError:
    return ExecutionError(
        f"dataset '{table}': changes in its log cannot be applied: {what}; refresh the dataset"
    )
