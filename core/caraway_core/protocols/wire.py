"""The messages between a scheduler and an executor, in forms that are cheap to send."""

from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import ipc

from caraway_core.ids import ExecutorId, TableName
from caraway_core.protocols.fleet import AnswerPage, Description


@dataclass(frozen=True, slots=True)
class InputShape:
    """An input of a task whose tables travel beside it; `makers` names who made each of them."""

    name: str
    schema: pa.Schema
    makers: tuple[ExecutorId, ...]


@dataclass(frozen=True, slots=True)
class ActorStatus:
    """What the process that keeps an executor's actor sees of it."""

    description: Description
    refusal: str = ""
    """Why a scheduler gives it no work; empty while none has refused it."""
    metrics: bytes = field(default=b"", repr=False)
    """Its page of metrics, as Prometheus text."""
    pid: int = 0
    """The process of the actor, which the process that keeps it looks at."""
    stopped: int = 0
    """The number of times work was stopped there. Some of that work may still run."""


@dataclass(frozen=True, slots=True)
class PackedPage:
    """A page whose batches are one Arrow IPC stream.

    Arrays pickled one by one cost a buffer each, and views of strings are copied on the way.
    """

    cursor: str
    rows: pa.Buffer | None = field(repr=False)
    is_last: bool
    schema: pa.Schema | None = None
    reads_only_catalog: bool = False
    written: TableName | None = None


def pack(page: AnswerPage) -> PackedPage:
    return PackedPage(
        page.cursor,
        _written(page.batches) if page.batches else None,
        page.is_last,
        page.schema,
        page.reads_only_catalog,
        page.written,
    )


def unpack(packed: PackedPage) -> AnswerPage:
    """The page again; its batches use the memory of the packed one."""
    batches: tuple[pa.RecordBatch, ...] = ()
    if packed.rows is not None:
        with ipc.open_stream(packed.rows) as reader:
            batches = tuple(reader)
    return AnswerPage(
        packed.cursor,
        batches,
        packed.is_last,
        packed.schema,
        packed.reads_only_catalog,
        packed.written,
    )


def _written(batches: tuple[pa.RecordBatch, ...]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()
