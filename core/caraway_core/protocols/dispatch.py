"""The protocol between the control plane and the executors: in process or on a cluster."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.ids import CatalogVersion, ExecutorId, QueryId, TableName
from caraway_core.protocols.offers import OfferedPart
from caraway_core.protocols.profiles import TaskProfile
from caraway_core.statements import (
    ActiveStatement,
    CatalogSnapshot,
    ReadPoint,
    Statement,
    ViewFacts,
)
from caraway_core.statements.questions import Answer, StatementQuestion
from caraway_core.tables import StoredTable


class OfferedAnswer(Protocol):
    """A stream without rows: clients read them at executors. It ends once they have."""

    @property
    def offered(self) -> tuple[OfferedPart, ...]: ...

    @property
    def is_ordered(self) -> bool:
        """True if the parts, one after the other, have the rows in their order."""
        ...

    @property
    def rows_read(self) -> int:
        """The number of rows that clients have read; known at the end."""
        ...


@dataclass(slots=True, eq=False)
class StreamTraits:
    """The ways in which the rows of a stream may be read.

    A stream that wraps another has the traits of that one. The producer sets `answer` if
    clients read the rows at executors, `is_at_hand` while the next batch needs no wait, and
    `whole`, until the first read, if one batch is known to be all rows. The reader sets the
    others before the first batch. With `takes_plain`, batches may have strings and bytes in
    place of views, where that saves copies; the schema stays as it is. With `takes_uncut`,
    batches may have as many rows as came at once. The producer of a task that is profiled sets
    `profile`, which returns where the time went once all rows were read.
    """

    answer: OfferedAnswer | None = None
    is_at_hand: bool = False
    whole: pa.RecordBatch | None = None
    takes_plain: bool = False
    takes_uncut: bool = False
    profile: Callable[[], TaskProfile] | None = None

    def read_as(self, other: "StreamTraits") -> None:
        """Let the reader of another stream read this one in its place."""
        self.takes_plain, self.takes_uncut = other.takes_plain, other.takes_uncut


class BatchStream(Protocol):
    """A stream of record batches; closing it stops the work that produces them."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def reads_only_catalog(self) -> bool:
        """True if the same statement returns the same rows until the catalog changes."""
        ...

    @property
    def written(self) -> TableName | None:
        """The table that the statement writes to, or None for a read."""
        ...

    @property
    def traits(self) -> StreamTraits: ...

    @property
    def is_at_end(self) -> bool:
        """True if the end of the rows is known, so that the reader need not wait for it."""
        ...

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]: ...

    async def aclose(self) -> None: ...


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
        """True if its heartbeat is live and it is not refused."""
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

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """Plan a statement as far as its question needs, and answer it.

        Raises:
            CatalogMovedError: the catalog version that the statement names is not available.
            QueryError: the statement cannot be planned, or what is asked cannot be answered.
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


@dataclass(frozen=True, slots=True)
class StageWork:
    """The completed tasks of a stage on one executor; None means the scheduler itself."""

    executor_id: ExecutorId | None
    tasks: int = 0
    rows: int = 0
    size_bytes: int = 0
    elapsed_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class StageProgress:
    """The progress of one stage of a running statement.

    `reads` names the stages, and `tables` the tables, whose rows it reads. The times are those of
    completed tasks, in milliseconds since 1970.
    """

    name: str
    note: str
    state: Literal["waiting", "running", "done"]
    reads: tuple[str, ...]
    tables: tuple[TableName, ...]
    tasks_total: int
    tasks_done: int
    rows: int
    size_bytes: int
    work: tuple[StageWork, ...]
    began_at_ms: float | None = None
    ended_at_ms: float | None = None


class Dispatch(Protocol):
    """Sends work to executors and returns their rows."""

    async def install(self, snapshot: CatalogSnapshot) -> Mapping[TableName, str]: ...

    def views(self) -> Mapping[TableName, ViewFacts]:
        """Return the facts of every view of the catalog that new statements see."""
        ...

    async def execute(self, query_id: QueryId, statement: Statement) -> BatchStream: ...

    async def ask(self, question: StatementQuestion[Answer]) -> Answer:
        """Plan a statement as far as its question needs, and answer it.

        Raises:
            CatalogMovedError: the catalog version that the statement names is not available.
            QueryError: the statement cannot be planned, or what is asked cannot be answered.
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

    def stages(self, query_id: QueryId) -> tuple[StageProgress, ...]:
        """Return the stages of a distributed statement that runs here, the last one last."""
        ...

    def under_way(self) -> Sequence[ActiveStatement]:
        """Return the statements whose streams are neither exhausted nor closed."""
        ...

    def executors(self) -> tuple[ExecutorStatus, ...]: ...

    async def aclose(self) -> None: ...
