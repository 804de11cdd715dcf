"""The messages between a scheduler and an executor, in forms that are cheap to send.

Ray pickles every argument and every answer by itself, in Python. Bytes it sends as they are. So the
arguments of a call and small answers are pickled here, all at once and in C: a small call then
takes about two thirds of the processor time.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.fleet import AnswerPage, Description, TaskReport
from caraway_core.protocols.profiles import TaskProfile
from caraway_core.releases.protocol_versions import growing


@dataclass(frozen=True, slots=True)
class InputShape:
    """An input of a task whose tables are sent separately; `makers` names their producers."""

    name: str
    schema: pa.Schema
    makers: tuple[ExecutorId, ...]


@dataclass(frozen=True, slots=True)
class ActorStatus:
    """The status of an executor's actor, as its parent process sees it."""

    description: Description
    refusal: str = ""
    """The reason why a scheduler refuses it; empty if none does."""
    metrics: bytes = field(default=b"", repr=False)
    """The metrics of the executor, as Prometheus text."""
    pid: int = 0
    """The process id of the actor, which the parent process watches."""
    stopped: int = 0
    """The number of stops of work there; some of that work may still run."""


@growing
@dataclass(frozen=True, slots=True)
class PackedPage:
    """A page whose batches are encoded as one Arrow IPC stream.

    Pickling arrays one by one costs a buffer each, and copies string views.
    """

    cursor: str
    rows: pa.Buffer | bytes | None = field(repr=False)
    is_last: bool
    schema: pa.Schema | None = None
    """The schema of the result, if it is another one than that of the rows."""
    has_schema: bool = False
    """True if this is the first page, which has the schema."""
    reads_only_catalog: bool = False
    written: TableName | None = None
    profile: TaskProfile | None = None


@growing
@dataclass(frozen=True, slots=True)
class CarriedAnswer:
    """The result of a task that ran over a channel."""

    report: TaskReport
    tables: tuple[bytes, ...] | None = field(default=None, repr=False)
    """Its packed tables; None if they are too large, and wait to be taken through Ray."""


RUN_CARRIED = "run_carried"
"""The name by which a task is run over a channel."""
SentPage = bytes | PackedPage
"""A page on its way; small ones are pickled."""
_SMALL_BYTES = 64 * 1024


def pack_call(*arguments: object) -> bytes:
    """Pickle the arguments of a call."""
    return pickle.dumps(arguments, protocol=5)


def unpack_call(packed: bytes) -> tuple[Any, ...]:
    """Return the arguments of a call; only a peer of the same cluster can have sent them."""
    arguments: tuple[Any, ...] = pickle.loads(packed)  # noqa: S301 -- a peer of this cluster
    return arguments


def pack(page: AnswerPage) -> SentPage:
    """Encode a page. The rows of a large one stay a buffer, which Ray does not copy."""
    rows = _written(page.batches[0].schema, page.batches) if page.batches else None
    schema = page.schema
    if page.batches and schema is not None and schema.equals(page.batches[0].schema, True):
        schema = None  # It is in the stream.
    packed = PackedPage(
        page.cursor,
        rows,
        page.is_last,
        schema,
        page.schema is not None,
        page.reads_only_catalog,
        page.written,
        page.profile,
    )
    if rows is None:
        return pickle.dumps(packed, protocol=5)
    if rows.size <= _SMALL_BYTES:
        return pickle.dumps(replace(packed, rows=rows.to_pybytes()), protocol=5)
    return packed


def unpack(sent: SentPage) -> AnswerPage:
    """Decode a page; its batches share the memory of the encoded one."""
    packed: PackedPage = pickle.loads(sent) if isinstance(sent, bytes) else sent  # noqa: S301 -- a peer of this cluster
    batches: tuple[pa.RecordBatch, ...] = ()
    schema = packed.schema
    if packed.rows is not None:
        with ipc.open_stream(packed.rows) as reader:
            batches = tuple(reader)
            if packed.has_schema and schema is None:
                schema = reader.schema
    return AnswerPage(
        packed.cursor,
        batches,
        packed.is_last,
        schema,
        packed.reads_only_catalog,
        packed.written,
        packed.profile,
    )


def pack_table(table: pa.Table) -> bytes:
    """Encode a small table of an exchange."""
    packed: bytes = _written(table.schema, table.to_batches()).to_pybytes()
    return packed


def unpack_table(packed: bytes) -> pa.Table:
    """Decode a table, which shares the memory of the encoded one."""
    with ipc.open_stream(packed) as reader:
        return reader.read_all()


def _written(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()
