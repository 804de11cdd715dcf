"""The seam between what drives a query and the executors of a cluster that do the work.

A fleet knows how to reach executors; it decides nothing. One adapter reaches them over Ray, one
holds them in this process, and the same tests run over both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.changes import Log, Logs
from caraway_core.ids import CatalogVersion, ExecutorId, QueryId, TableName
from caraway_core.pieces import Piece
from caraway_core.protocols.dispatch import BatchStream, Statement
from caraway_core.protocols.storing import StoreOrder
from caraway_core.suspects import End
from caraway_core.tables import StoredTable, TableSpec
from caraway_core.work import Work

PROTOCOL_VERSION = 8
"""Raised with every change of what schedulers and executors say to each other."""
ANSWER_S = 2.0
"""How long an executor has to say its heartbeat."""


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file of the scheduler's own host; what it holds never changes under its path.

    An executor that does not see it there reads a copy, which is named after the SHA-256 `digest`
    and ends in `suffix`. Without a digest it is too large to be sent.
    """

    path: str
    size_bytes: int
    digest: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """The versions of a scheduler's catalog that statements may still need.

    Versions from `served` on are those of new statements, or of the next ones.
    """

    served: CatalogVersion
    versions: frozenset[CatalogVersion] = frozenset()

    def needs(self, version: CatalogVersion) -> bool:
        return version >= self.served or version in self.versions


@dataclass(frozen=True, slots=True)
class TableCatalog:
    """The tables of a catalog snapshot, in the form that crosses to executors."""

    version: CatalogVersion
    origin: str
    """Which scheduler's catalog this is: each counts its versions for itself."""
    tables: Mapping[TableName, TableSpec]
    files: tuple[OwnFile, ...] = ()
    """Those that its tables are read from and that other hosts may lack."""
    pinned: Pinned | None = None
    """The versions before it that are still needed; None: all of them."""


@dataclass(frozen=True, slots=True)
class Description:
    """What an executor says of itself when it is asked; the answer is its heartbeat.

    `incarnation` is new each time the executor starts anew, which is when it has forgotten
    every catalog. `holds` names what it keeps: memory tables now, partitions later.
    """

    executor_id: ExecutorId
    incarnation: str
    protocol_version: int
    build: str
    address: str
    cores: int
    memory_bytes: int
    is_draining: bool = False
    active_tasks: int = 0
    finished_tasks: int = 0
    failed_tasks: int = 0
    memory_used_bytes: int = 0
    catalogs: Mapping[str, CatalogVersion] = field(default_factory=dict)
    holds: tuple[TableName, ...] = ()
    last_end: End | None = None
    """How the process before this one ended, where a statement may have ended it."""


@dataclass(frozen=True, slots=True)
class ExchangePart:
    """One table of an exchange. Only the fleet that made it knows what `handle` is."""

    handle: Any = field(repr=False)
    executor_id: ExecutorId
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Input:
    """An exchange as a fragment reads it: the tables of `parts`, one after another, as `name`."""

    name: str
    schema: pa.Schema
    parts: tuple[ExchangePart, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """What a task reads of a table's files; a table without a share is read whole."""

    table: TableName
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """How a task's rows are parted: by the hash of the columns at `keys`, into `count` tables.

    The last `extra` columns were added only to be hashed and are dropped.
    """

    keys: tuple[int, ...]
    count: int
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work on one executor."""

    query_id: QueryId
    stage: str
    catalog: str
    """The `origin` of the catalog whose tables the work names."""
    catalog_version: CatalogVersion
    work: Work
    schema: pa.Schema = field(repr=False)
    """Of the rows that come out, before anything is split."""
    shares: tuple[Share, ...] = ()
    split: Split | None = None
    store: StoreOrder | None = None
    """Of a task that is streamed: its rows are stored, and word of the chunks comes back."""
    in_background: bool = False
    logs: Logs = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class TaskTable:
    """An input of a task, brought to its executor: its name in the plan, and its rows."""

    name: str
    schema: pa.Schema
    tables: tuple[pa.Table, ...]


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What came of a task, beside its tables: for each table its rows and bytes."""

    sizes: tuple[tuple[int, int], ...]
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What came of a task: a part, or one for each hash partition, and what it took."""

    parts: tuple[ExchangePart, ...]
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """Some rows of an answer that is read page by page.

    The first one of an answer also says what it is. An answer that fits in one page leaves
    nothing open on the executor; any other is open under `cursor` until it `is_last` or closed.
    """

    cursor: str
    batches: tuple[pa.RecordBatch, ...]
    is_last: bool
    schema: pa.Schema | None = None
    reads_only_catalog: bool = False
    written: TableName | None = None


class Fleet(Protocol):
    """Reaches executors. Cancelling a call cancels its work on the executor.

    Each method raises ExecutorLostError when the executor is gone or does not answer,
    PartLostError when an input of a task is gone, and QueryError when the work itself failed.
    """

    async def describe(
        self, origin: str = "", pinned: Pinned | None = None
    ) -> Sequence[Description]:
        """Ask every executor for its heartbeat; those that do not answer in time are left out.

        An executor keeps the catalog of an origin that asks, and of its versions those that are
        pinned; others it may forget in time.
        Returns within ANSWER_S, also when executors hang, with the answers of all others.
        """
        ...

    async def install(
        self, executor_id: ExecutorId, catalog: TableCatalog
    ) -> Mapping[TableName, str]:
        """Give the executor a catalog; it keeps those before it that are pinned.

        Files of the catalog that the executor lacks are sent before it.
        Returns what could not be installed, as an error text by table.
        """
        ...

    async def load(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        chunks: Sequence[str],
        log: Log = (),
    ) -> int:
        """Have the executor bring pieces of a version into memory, before a catalog names it.

        Returns how many rows they have, with the changes of the log.
        """
        ...

    async def put_back(
        self,
        executor_id: ExecutorId,
        origin: str,
        table: TableName,
        spec: StoredTable,
        log: Log = (),
    ) -> int:
        """Have the executor store chunks again that it has and that are damaged in their store.

        Returns how many it stored.
        """
        ...

    async def probe(self, executor_id: ExecutorId) -> None:
        """Have the executor run a fragment, which is what makes it ready."""
        ...

    async def run(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> TaskOutcome:
        """Run a task and leave its rows in the exchange."""
        ...

    async def stream(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> BatchStream:
        """Run a task and read its rows here."""
        ...

    async def fetch(self, inputs: Sequence[Input]) -> Sequence[TaskTable]:
        """Bring the tables of exchanges here; meant for few rows."""
        ...

    async def execute(
        self, executor_id: ExecutorId, query_id: QueryId, statement: Statement, catalog: str
    ) -> BatchStream:
        """Run a whole statement and read its rows here."""
        ...

    async def refuse(self, executor_id: ExecutorId, reason: str) -> None:
        """Tell an executor why this scheduler gives it no work."""
        ...

    def lost(self, executor_id: ExecutorId) -> None:
        """Fail every call under way to an executor that is known to be gone."""
        ...

    async def aclose(self) -> None: ...
