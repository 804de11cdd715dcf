"""Encodes the values sent most often to engine processes: catalogs, logs and rows.

Only the changes of a catalog or a log are sent. Messages arrive in order, so both ends have the
same state at each message.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.ids import CatalogVersion, TableName
from caraway_core.protocols.embedding import CatalogEmbedding, TextVectors
from caraway_core.protocols.fleet import TaskTable
from caraway_core.statements import CatalogSnapshot, Statement, SystemTable
from caraway_core.tables import TableSpec
from caraway_engine.rows import plain
from caraway_executor.engines.messages import BatchesSent
from caraway_executor.engines.shared_memory import HeldPlace, WritableMemory

_KEPT_SCHEMAS = 256
_TOGETHER_BYTES = 4 * 1024 * 1024
"""Batches up to this size are sent in one message."""
_USUAL_ROWS = 8 * 1024
"""The size of the engine's own batches; as many are sent together before their size is known."""
_STATEMENT = tuple(each.name for each in fields(Statement) if each.name != "logs")


class CrossingCatalog(NamedTuple):
    """A catalog, as the difference from the one sent before."""

    version: CatalogVersion
    names: tuple[TableName, ...]
    changed: Mapping[TableName, TableSpec]
    system: tuple[TableName, ...]
    undivided: frozenset[TableName]


class CrossingStatement(NamedTuple):
    """A statement. Each log has the number of known entries to keep, and the new entries."""

    values: tuple[Any, ...]
    logs: Mapping[str, tuple[int, Log]]


class SendingEnd:
    """The sending end: encodes values, and records the sent ones."""

    def __init__(self) -> None:
        self._tables: Mapping[TableName, TableSpec] = {}
        self._logs: dict[str, Log] = {}

    def catalog(self, snapshot: CatalogSnapshot) -> CrossingCatalog:
        """Encode a catalog as the difference from the last one."""
        before, self._tables = self._tables, snapshot.tables
        changed = {
            name: spec for name, spec in snapshot.tables.items() if before.get(name) is not spec
        }
        names = tuple(snapshot.tables)
        system = tuple(snapshot.system)
        return CrossingCatalog(snapshot.version, names, changed, system, snapshot.undivided)

    def statement(self, statement: Statement) -> CrossingStatement:
        """Encode a statement, with its logs as differences."""
        values = tuple(getattr(statement, name) for name in _STATEMENT)
        return CrossingStatement(values, self.logs(statement.logs))

    def logs(self, logs: Mapping[str, Log]) -> Mapping[str, tuple[int, Log]]:
        """Encode logs as differences from those sent before."""
        crossing = {}
        for key, log in logs.items():
            before = self._logs.get(key, ())
            kept = len(before) if _begins_with(log, before) else 0
            crossing[key] = kept, log[kept:]
            self._logs[key] = log
        return crossing


class ReceivingEnd:
    """The receiving end: restores values from messages."""

    def __init__(
        self, show: Callable[[TableName], SystemTable], models: TextVectors | None = None
    ) -> None:
        """Take what asks the other process for system tables, and for vectors."""
        self._show = show
        self._embedding = CatalogEmbedding(vectors=models)
        self._tables: Mapping[TableName, TableSpec] = {}
        self._logs: dict[str, Log] = {}

    def catalog(self, crossing: CrossingCatalog) -> CatalogSnapshot:
        """Restore a catalog."""
        known = {**self._tables, **crossing.changed}
        self._tables = {name: known[name] for name in crossing.names}
        system = {name: self._show(name) for name in crossing.system}
        return CatalogSnapshot(
            crossing.version, self._tables, system, crossing.undivided, self._embedding
        )

    def statement(self, crossing: CrossingStatement) -> Statement:
        """Restore a statement."""
        statement = Statement(**dict(zip(_STATEMENT, crossing.values, strict=True)))
        if not crossing.logs:
            return statement
        return replace(statement, logs=self.logs(crossing.logs))

    def logs(self, crossing: Mapping[str, tuple[int, Log]]) -> Mapping[str, Log]:
        """Restore logs."""
        logs = {}
        for key, (kept, tail) in crossing.items():
            log = self._logs.get(key, ())[:kept] + tail
            logs[key] = self._logs[key] = log
        return logs


class CrossingTables(NamedTuple):
    """The inputs of a task: name, schema, and tables as IPC streams."""

    inputs: tuple[tuple[str, pa.Schema, tuple[bytes, ...]], ...]

    @classmethod
    def from_tables(cls, inputs: Sequence[TaskTable]) -> "CrossingTables":
        """Encode the inputs of a task."""

        def tables(each: TaskTable) -> tuple[bytes, ...]:
            return tuple(written(table).to_pybytes() for table in each.tables)

        return cls(tuple((each.name, each.schema, tables(each)) for each in inputs))

    def read(self) -> tuple[TaskTable, ...]:
        """Restore the inputs of a task."""
        return tuple(
            TaskTable(name, schema, tuple(read(pa.py_buffer(table)) for table in tables))
            for name, schema, tables in self.inputs
        )


class RowsOut:
    """Encodes the batches of one stream."""

    def __init__(self, schema: pa.Schema) -> None:
        self._plain = plain.plain_schema(schema) if plain.has_views(schema) else None
        self.is_whole = any(map(_has_dictionary, schema.types))
        self._row_bytes: float | None = None
        self._stream_bytes = 0
        """The size of an IPC stream without batches."""

    def most_rows(self) -> int:
        """Return how many rows to send together, by the size of those sent before."""
        if not self._row_bytes:
            return _USUAL_ROWS
        return max(1, int(_TOGETHER_BYTES / self._row_bytes))

    def body(self, batch: pa.RecordBatch) -> pa.Buffer:
        """Serialize a batch. Views become plain, because they would serialize their whole text."""
        batch = self._made_plain(batch)
        return _stream_of(batch.schema, [batch]) if self.is_whole else batch.serialize()

    def sent(
        self, number: int, batches: Sequence[pa.RecordBatch], memory: WritableMemory | None
    ) -> tuple[BatchesSent, pa.Buffer | None, HeldPlace | None]:
        """Serialize batches into shared memory, or into a body if there is no place for them.

        The place is held until it is marked as sent.
        """
        batches = [self._made_plain(each) for each in batches]
        size_bytes = self._measured(batches)
        self._row_bytes = size_bytes / max(1, sum(each.num_rows for each in batches))
        if memory is not None and (held_place := memory.take_place(size_bytes)) is not None:
            with pa.FixedSizeBufferWriter(held_place.buffer) as sink:
                _write(sink, batches[0].schema, batches)
            return BatchesSent(number, True, held_place.place), None, held_place
        if self.is_whole or len(batches) > 1:
            return BatchesSent(number, True), _stream_of(batches[0].schema, batches), None
        return BatchesSent(number, False), batches[0].serialize(), None

    def _measured(self, batches: Sequence[pa.RecordBatch]) -> int:
        """Return the size of an IPC stream of batches, which is cheaper to add up than to write."""
        if self.is_whole:
            measure = pa.MockOutputStream()
            _write(measure, batches[0].schema, batches)
            return int(measure.size())
        if not self._stream_bytes:
            self._stream_bytes = _stream_of(batches[0].schema, ()).size
        return self._stream_bytes + sum(int(pa.ipc.get_record_batch_size(each)) for each in batches)

    def _made_plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if self._plain is None else plain.plain_batch(batch, self._plain)


class RowsIn:
    """Decodes the batches of streams with one schema, in the memory they were received in."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._has_views = plain.has_views(schema)
        self._crossed = plain.plain_schema(schema) if self._has_views else schema

    def batches(
        self,
        body: pa.Buffer,
        is_whole: bool,
        *,
        stays_plain: bool = False,
        stays_uncut: bool = False,
    ) -> list[pa.RecordBatch]:
        """Decode batches; those that stay plain have plain types in place of views.

        Batches are cut for readers that take few rows at once.
        """
        if is_whole:
            with pa.ipc.open_stream(body) as reader:
                batches = list(reader)
        else:
            batches = [pa.ipc.read_record_batch(body, self._crossed)]
        if self._has_views and not stays_plain:
            batches = [plain.restored(each, self.schema) for each in batches]
        if stays_uncut:
            return batches
        return [piece for each in batches for piece in _pieces(each)]


class SchemaCache:
    """Caches decoders by serialized schema, because statements share few schemas."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, RowsIn] = OrderedDict()

    def rows(self, serialized: bytes) -> RowsIn:
        """Return the decoder of a serialized schema."""
        rows_in = self._known.get(serialized)
        if rows_in is None:
            schema = pa.ipc.read_schema(pa.py_buffer(serialized))
            rows_in = self._known[serialized] = RowsIn(schema)
            if len(self._known) > _KEPT_SCHEMAS:
                self._known.popitem(last=False)
        return rows_in


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    step = part_rows(batch, _USUAL_ROWS)
    if step == batch.num_rows:
        yield batch
        return
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def part_rows(batch: pa.RecordBatch, wanted_rows: int) -> int:
    """Return the size of the parts that a batch is cut into: equal, and about as wanted."""
    rows: int = batch.num_rows
    return -(-rows // max(1, round(rows / wanted_rows)))


def _stream_of(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    _write(sink, schema, batches)
    return sink.getvalue()


def _write(sink: pa.NativeFile, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> None:
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def written(table: pa.Table) -> pa.Buffer:
    """Serialize a table with its schema."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def read(body: pa.Buffer) -> pa.Table:
    """Read a table that `written` serialized; it stays in the memory of the body."""
    with pa.ipc.open_stream(body) as reader:
        return reader.read_all()


def _begins_with(log: Log, before: Log) -> bool:
    """Return whether a log continues another one; entries are compared by identity."""
    if not before or len(log) < len(before):
        return not before
    return log[0] is before[0] and log[len(before) - 1] is before[-1]


def _has_dictionary(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return True
    return any(_has_dictionary(type_.field(i).type) for i in range(type_.num_fields))
