"""The protocol between the control plane and the executors: in process or on a cluster."""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import pyarrow as pa

from caraway_core.bound_values import ArrowValue
from caraway_core.changes import Log, Logs
from caraway_core.ids import CatalogVersion, ExecutorId, PrincipalId, QueryId, TableName
from caraway_core.index_orders import IndexOrder
from caraway_core.protocols.embedding import NO_EMBEDDING, CatalogEmbedding
from caraway_core.protocols.offers import OfferedPart, OfferOrder
from caraway_core.protocols.storing import StoreOrder
from caraway_core.tables import StoredTable, TableSpec

if TYPE_CHECKING:
    from caraway_core.statement_searches import StatementSearch

Scalar = None | bool | int | float | str | list[Any] | ArrowValue
SystemTable = Callable[[PrincipalId | None], pa.Table]
"""Builds the current content of a `runtime.*` table as a principal may see it; None sees all."""
GIVEN_SCHEMA = "exchange"
"""The schema of rows that come with a statement. It lists none of them."""
INSERT, UPDATE, DELETE = "Insert Into", "Update", "Delete"
"""The engine's names for write operations."""


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Every table that queries can see at one moment; each change makes a new snapshot.

    Executors read the tables in `undivided` under other paths than the scheduler. Their files
    therefore cannot be divided among tasks.
    """

    version: CatalogVersion
    tables: Mapping[TableName, TableSpec]
    system: Mapping[TableName, SystemTable]
    undivided: frozenset[TableName] = frozenset()
    embedding: CatalogEmbedding = NO_EMBEDDING


@dataclass(frozen=True, slots=True)
class ViewFacts:
    """The planning result of a view: the tables that it reads, or the table that is missing.

    If it `searches`, statements that read it run searches before.
    """

    reads: frozenset[TableName] = frozenset()
    missing: TableName | None = None
    searches: bool = False


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows that come with a statement, which reads them as a table of this name.

    The name must be one that nobody can guess, or that only the statement sees. `schema` are the
    columns of the table, if the rows lack some: these are NULL. A `target` means that the statement
    does nothing but insert the rows into that table as they are; with `replaces`, in place of all
    rows that it has, which only tables with a log can do. The rows cross to other processes as an
    IPC stream.
    """

    name: TableName
    rows: pa.Table = field(repr=False)
    schema: pa.Schema | None = field(default=None, repr=False)
    target: TableName | None = None
    replaces: bool = False

    @classmethod
    def of(
        cls, rows: pa.Table, target: TableName | None = None, *, replaces: bool = False
    ) -> "GivenRows":
        """Give rows a name of their own."""
        name = TableName(f"{GIVEN_SCHEMA}.{secrets.token_hex(16)}")
        return cls(name, rows, target=target, replaces=replaces)

    @classmethod
    def named(cls, name: TableName, rows: pa.Table, schema: pa.Schema | None = None) -> "GivenRows":
        """Give rows a name."""
        return cls(name, rows, schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _given, (self.name, _encoded(self.rows), self.schema, self.target, self.replaces)


def _given(
    name: TableName,
    ipc: bytes,
    schema: pa.Schema | None,
    target: TableName | None,
    replaces: bool,  # pickle passes positions
) -> GivenRows:
    with pa.ipc.open_stream(pa.py_buffer(ipc)) as reader:
        return GivenRows(name, reader.read_all(), schema, target, replaces)


def _encoded(rows: pa.Table) -> bytes:
    # Measured first: a sink that grows copies the rows again and again.
    measure = pa.MockOutputStream()
    with pa.ipc.new_stream(measure, rows.schema) as writer:
        writer.write_table(rows)
    content = bytearray(measure.size())
    sink = pa.FixedSizeBufferWriter(pa.py_buffer(content))
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(content)


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with its bound values, and what it may read and write.

    `parameters` maps the name of each placeholder (`1`, `2`, ... for positional ones) to a value.
    `may_write` says whether the caller may write at all; `writable` names the tables that accept
    writes. With `store`, rows are stored where they are made, and the stream describes the chunks.
    A statement `in_background` never takes a slot that a statement with a waiting reader could use.
    `viewer` is the principal whose rows system tables show; None shows all rows. `sources` names
    the sources of accelerated datasets that may be read; None allows all. `bound` maps datasets to
    the tables that are read in their place, and `targets` maps datasets to the tables that are
    written in their place. `readable` names the only tables and views that it may name; None allows
    all. A view that it may name reads whatever the view reads. `as_changes` returns the rows that a
    write would change, without changing them. `given` are rows that come with the statement, as a
    table that it reads. `found` are the rows of its searches, by the names of `StatementSearch`;
    None: they did not run. With `offer`, executors may serve the rows; the stream then has them in
    `offered`. With `index`, an index may give the rows; the statement alone returns the same.

    The dispatch sets `logs`, the logs of datasets to read, and `catalog_version`, the catalog that
    the statement was planned with, unless the statement names those of a `ReadPoint`.
    """

    sql: str
    parameters: Mapping[str, Scalar]
    may_write: bool = False
    writable: frozenset[TableName] = frozenset()
    store: StoreOrder | None = None
    in_background: bool = False
    logs: Logs = field(default_factory=dict, repr=False)
    viewer: PrincipalId | None = None
    sources: frozenset[TableName] | None = None
    catalog_version: CatalogVersion | None = None
    bound: Mapping[TableName, TableName] = field(default_factory=dict, repr=False)
    targets: Mapping[TableName, TableName] = field(default_factory=dict, repr=False)
    as_changes: bool = False
    given: GivenRows | None = None
    readable: frozenset[TableName] | None = None
    found: tuple[GivenRows, ...] | None = None
    offer: OfferOrder | None = None
    index: IndexOrder | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class ActiveStatement:
    """A running statement: the catalogs that it may read, and its start time.

    It was planned over one of the `catalogs`, with these logs. `since_s` is in monotonic seconds.
    """

    sql: str
    catalogs: tuple[Mapping[TableName, TableSpec], ...]
    logs: Logs
    since_s: float


@dataclass(frozen=True, slots=True)
class TableWrite:
    """A statement that changes a table; `name` is the engine's name for the operation."""

    table: TableName
    name: str


@dataclass(frozen=True, slots=True)
class ReadPoint:
    """The state of the data that a statement and its searches read.

    `catalog_version` is None for the newest catalog. `logs` are the logs of datasets at this point;
    an empty mapping means the current ones. `viewer` is the principal that asks.
    """

    catalog_version: CatalogVersion | None = None
    logs: Logs = field(default_factory=dict, repr=False)
    viewer: PrincipalId | None = None


class BatchStream(Protocol):
    """A stream of record batches; closing it stops the work that produces them."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def reads_only_catalog(self) -> bool:
        """Whether the same statement returns the same rows until the catalog changes."""
        ...

    @property
    def written(self) -> TableName | None:
        """The table that the statement writes to, or None for a read."""
        ...

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]: ...

    async def aclose(self) -> None: ...


class OfferedAnswer(Protocol):
    """A stream without rows: clients read them at executors. It ends once they have."""

    @property
    def offered(self) -> tuple[OfferedPart, ...]: ...

    @property
    def is_ordered(self) -> bool:
        """Whether the parts, one after the other, have the rows in their order."""
        ...

    @property
    def rows_read(self) -> int:
        """How many rows clients have read; known at the end."""
        ...


def offered_of(stream: BatchStream) -> OfferedAnswer | None:
    """Return the offers that a stream stands for, if it does; other streams may wrap it."""
    inner: object = stream
    while inner is not None:
        # isinstance would compare all members, which takes longer than the rest of an answer.
        if hasattr(inner, "offered"):
            return cast(OfferedAnswer, inner)
        inner = getattr(inner, "wrapped", None)
    return None


def leave_plain(stream: BatchStream) -> None:
    """Let a stream pass on strings and bytes in place of views, where that saves copies.

    Its batches may then have either; its schema stays as it is.
    """
    inner: object = stream
    while inner is not None:
        if hasattr(inner, "stays_plain"):
            inner.stays_plain = True
        inner = getattr(inner, "wrapped", None)


def has_rows_at_hand(stream: BatchStream) -> bool:
    """Return whether the next batch of a stream is known to be here, so that it takes no wait."""
    inner: object = stream
    while inner is not None:
        if getattr(inner, "is_at_hand", False):
            return True
        inner = getattr(inner, "wrapped", None)
    return False


ExecutorState = Literal["registered", "ready", "draining", "lost", "refused"]


@dataclass(frozen=True, slots=True)
class ExecutorStatus:
    """The last known state of an executor.

    `catalog_version` is the catalog that this scheduler installed there. `holds` names the tables
    that it keeps, and `reason` says why it is not ready.
    """

    executor_id: ExecutorId
    state: ExecutorState
    address: str = ""
    incarnation: str = ""
    cores: int = 0
    memory_bytes: int = 0
    memory_used_bytes: int = 0
    build: str = ""
    protocol_version: int = 0
    active_tasks: int = 0
    finished_tasks: int = 0
    failed_tasks: int = 0
    catalog_version: CatalogVersion | None = None
    holds: tuple[TableName, ...] = ()
    heartbeat_age_s: float = 0.0
    reason: str = ""

    @property
    def is_registered(self) -> bool:
        """Whether its heartbeat is live and it is not refused."""
        return self.state in ("registered", "ready", "draining")

    @property
    def is_ready(self) -> bool:
        return self.state == "ready"


class Executor(Protocol):
    """Holds a catalog snapshot and runs statements over it."""

    def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]:
        """Install the snapshot for new statements; blocks.

        Returns an error message for each table that failed; all other tables are installed.
        """
        ...

    @property
    def views(self) -> Mapping[TableName, ViewFacts]:
        """The facts of every view in the snapshot that new statements see."""
        ...

    @property
    def holds(self) -> tuple[TableName, ...]:
        """The accelerated datasets of which there are rows in memory."""
        ...

    @property
    def memory_used_bytes(self) -> int:
        """The memory of engine processes; this process counts its own."""
        ...

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream:
        """Plan the statement and start it.

        Raises:
            QueryError: it cannot be planned or started.
        """
        ...

    async def write_of(self, statement: Statement) -> TableWrite | None:
        """Plan the statement and return what it would change; None if it only reads.

        Raises:
            QueryError: the statement cannot be planned.
        """
        ...

    async def parameters_of(self, statement: Statement) -> Mapping[str, pa.DataType]:
        """Return the types of the statement's parameters; null where none can be inferred.

        Raises:
            QueryError: the statement cannot be planned without values.
        """
        ...

    async def searches_of(self, statement: Statement) -> "tuple[StatementSearch, ...]":
        """Return the searches whose rows a statement reads; they run before it.

        Raises:
            CatalogMovedError: the catalog version that it names is not available.
            QueryError: a search is wrong, or the statement cannot be planned.
        """
        ...

    async def load(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Load a version of a dataset into memory before a snapshot names it; return its row count.

        Raises:
            QueryError: the version does not fit in memory, or cannot be read.
        """
        ...

    async def put_back(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Store local copies of damaged chunks again; return how many."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class StatementProgress:
    """The progress of a statement; totals grow while later stages are planned."""

    stages_done: int = 0
    stages_total: int = 0
    tasks_done: int = 0
    tasks_total: int = 0


class Dispatch(Protocol):
    """Sends work to executors and returns their rows."""

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]: ...

    def views(self) -> Mapping[TableName, ViewFacts]:
        """Return the facts of every view of the catalog that new statements see."""
        ...

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream: ...

    async def write_of(self, statement: Statement) -> TableWrite | None:
        """Plan a statement and return what it would change; None if it only reads.

        Raises:
            QueryError: the statement cannot be planned.
        """
        ...

    async def parameters_of(self, statement: Statement) -> Mapping[str, pa.DataType]:
        """Return the types of the statement's parameters; null where none can be inferred.

        Raises:
            QueryError: the statement cannot be planned without values.
        """
        ...

    async def searches_of(self, statement: Statement) -> "tuple[StatementSearch, ...]":
        """Return the searches whose rows a statement reads; they run before it.

        Raises:
            CatalogMovedError: the catalog version that it names is not available.
            QueryError: a search is wrong, or the statement cannot be planned.
        """
        ...

    def reading(self) -> AbstractContextManager[ReadPoint]:
        """Keep the newest catalog and logs, so that several statements read the same rows."""
        ...

    async def load(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Load a version of a dataset where it will be read, before a snapshot names it.

        Returns the row count, with the changes of the log applied.

        Raises:
            QueryError: the version does not fit, cannot be read, or repeats a key.
        """
        ...

    async def put_back(self, table: TableName, spec: StoredTable, log: Log = ()) -> int:
        """Let executors store their copies of damaged chunks again; return how many.

        Raises:
            CarawayError: the store accepts no writes.
        """
        ...

    def follow(self, spec: StoredTable, log: Log) -> None:
        """Make new statements read a version with this log; an empty log ends that."""
        ...

    def progress(self, query_id: QueryId) -> StatementProgress | None:
        """Return the progress of a distributed statement that runs here, or None."""
        ...

    def under_way(self) -> Sequence[ActiveStatement]:
        """Return the statements whose streams are neither exhausted nor closed."""
        ...

    def executors(self) -> tuple[ExecutorStatus, ...]: ...

    async def aclose(self) -> None: ...
