"""The protocol between query coordination and the executors of a cluster.

A fleet only delivers calls to executors; it makes no decisions. One adapter uses Ray, another keeps
the executors in this process. The same tests run over both.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from caraway_core.changes import Log, Logs
from caraway_core.errors import CarawayError
from caraway_core.ids import CatalogVersion, ExecutorId, QueryId, TableName
from caraway_core.pieces import Piece
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.embedding import EmbedderSpec
from caraway_core.protocols.hosting import CopyOrder, CopyStatus
from caraway_core.protocols.offers import FlightPlace, Offer, OfferOutcome
from caraway_core.protocols.profiles import TaskProfile
from caraway_core.protocols.storing import StoreOrder
from caraway_core.releases.protocol_versions import ProtocolVersions, growing
from caraway_core.settings import Address
from caraway_core.statements import GivenRows, Statement
from caraway_core.suspects import End
from caraway_core.tables import StoredTable, TableSpec
from caraway_core.work import Work

ANSWER_S = 2.0
"""The time limit for an executor's heartbeat response."""


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file on the scheduler's host; the content at its path never changes.

    An executor without access to the path reads a copy, named after the SHA-256 `digest` and ending
    in `suffix`. Without a digest, the file is too large to be sent.
    """

    path: str
    size_bytes: int
    digest: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Pinned:
    """The versions of a scheduler's catalog that statements may still need.

    New statements use version `served` or a later one.
    """

    served: CatalogVersion
    versions: frozenset[CatalogVersion] = frozenset()

    def needs(self, version: CatalogVersion) -> bool:
        return version >= self.served or version in self.versions


@dataclass(frozen=True, slots=True)
class TableCatalog:
    """The tables of a catalog snapshot, in the form that is sent to executors."""

    version: CatalogVersion
    origin: str
    """The scheduler that owns this catalog; each scheduler numbers its own versions."""
    tables: Mapping[TableName, TableSpec]
    files: tuple[OwnFile, ...] = ()
    """The files of its tables that other hosts may lack."""
    pinned: Pinned | None = None
    """The earlier versions that are still needed; None means all of them."""
    embedders: tuple[EmbedderSpec, ...] = ()
    """The embedding models that statements may use."""


@growing
@dataclass(frozen=True, slots=True)
class Description:
    """The heartbeat of an executor.

    `incarnation` changes with each restart, which loses all catalogs. `holds` names the tables that
    the executor keeps. `protocol_version` is the oldest version that it speaks: schedulers up to
    version 16 know no other.
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
    """The end of the previous process, if a statement may have ended it."""
    flight: FlightPlace | None = None
    """Where it serves parts of answers, if it does."""
    channels: Address | None = None
    """Where it listens for the channels of schedulers, if it does."""
    gpus: int = 0
    models: tuple[str, ...] = ()
    """The keys of the models that it hosts."""
    newest_version: int = 0
    """The newest protocol version that it speaks; 0 if it does not say."""
    carries_tasks: bool = False
    """True if it runs tasks over channels."""

    @property
    def spoken(self) -> ProtocolVersions:
        """The protocol versions that it speaks."""
        oldest = self.protocol_version
        return ProtocolVersions(oldest, max(oldest, self.newest_version))


@dataclass(frozen=True, slots=True)
class ExchangePart:
    """One table of an exchange; only the fleet that made it interprets `handle`."""

    handle: Any = field(repr=False)
    executor_id: ExecutorId
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Input:
    """An exchange as a fragment's input: the tables of `parts`, concatenated, under `name`."""

    name: str
    schema: pa.Schema
    parts: tuple[ExchangePart, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """The files that a task reads of a table; a table without a share is read whole."""

    table: TableName
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Partitions a task's rows into `count` tables, by a hash of the columns at `keys`.

    The last `extra` columns were added only for hashing, and are dropped.
    """

    keys: tuple[int, ...]
    count: int
    extra: int = 0


@growing
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
    """The schema of the output rows, before any split."""
    shares: tuple[Share, ...] = ()
    split: Split | None = None
    store: StoreOrder | None = None
    """For a streamed task: its rows are stored, and chunk descriptions are returned instead."""
    in_background: bool = False
    logs: Logs = field(default_factory=dict, repr=False)
    found: tuple[GivenRows, ...] = ()
    """The rows of searches that the work reads."""
    trace_id: str = field(default="", repr=False, compare=False)
    is_profiled: bool = False
    """True if the answer says where the time went."""


@dataclass(frozen=True, slots=True)
class TaskTable:
    """An input of a task after transfer to its executor: its name in the plan, and its rows."""

    name: str
    schema: pa.Schema
    tables: tuple[pa.Table, ...]


@growing
@dataclass(frozen=True, slots=True)
class TaskReport:
    """The result of a task without its tables: rows and bytes of each table, and the time taken."""

    sizes: tuple[tuple[int, int], ...]
    elapsed_ms: float
    profile: TaskProfile | None = None


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The result of a task: one part, or one per hash partition, and the time taken."""

    parts: tuple[ExchangePart, ...]
    elapsed_ms: float
    profile: TaskProfile | None = None


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """One page of a result that is read page by page.

    The first page also has the schema. A result that fits in one page leaves no state on the
    executor. Otherwise the result stays open as `cursor` until `is_last`, or until it is closed.
    """

    cursor: str
    batches: tuple[pa.RecordBatch, ...]
    is_last: bool
    schema: pa.Schema | None = None
    reads_only_catalog: bool = False
    written: TableName | None = None
    profile: TaskProfile | None = None
    """On the last page of a task that is profiled."""


class Fleet(Protocol):
    """Delivers calls to executors; cancelling a call cancels its work on the executor.

    Every method raises ExecutorLostError if the executor is gone or does not respond, PartLostError
    if an input of a task is lost, and QueryError if the work itself failed.
    """

    async def describe(
        self, origin: str = "", pinned: Pinned | None = None
    ) -> Sequence[Description]:
        """Request the heartbeat of every executor; those that do not respond in time are left out.

        An executor keeps the pinned catalog versions of the requesting origin, and may discard
        others. The call returns within ANSWER_S even if executors hang.
        """
        ...

    async def install(
        self, executor_id: ExecutorId, catalog: TableCatalog
    ) -> Mapping[TableName, str]:
        """Install a catalog on the executor, which keeps the pinned earlier ones.

        Files of the catalog that the executor lacks are sent first. Returns an error message for
        each table that failed.
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
        """Let the executor load pieces of a version into memory, before a catalog names it.

        Returns their row count, with the changes of the log applied.
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
        """Let the executor store its copies of damaged chunks again; return how many."""
        ...

    async def probe(self, executor_id: ExecutorId) -> None:
        """Run a test fragment on the executor; success makes it ready."""
        ...

    async def run_task(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> TaskOutcome:
        """Run a task and keep its rows in the exchange."""
        ...

    async def stream(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input]
    ) -> BatchStream:
        """Run a task and read its rows here."""
        ...

    async def offer(
        self, executor_id: ExecutorId, task: Task, inputs: Sequence[Input], offer: Offer
    ) -> None:
        """Run a task whose rows a client reads at the executor; returns when they are offered.

        Raises OverloadedError if the executor holds as many offers as it may.
        """
        ...

    async def attend(self, executor_id: ExecutorId, offer_id: str) -> OfferOutcome:
        """Wait until an offer was read to its end.

        Raises QueryError if it was not read in time, was left by its reader, or failed.
        """
        ...

    async def withdraw(self, executor_id: ExecutorId, offer_id: str, reason: CarawayError) -> None:
        """End an offer; whoever reads it is told the reason. Does not wait for the executor."""
        ...

    async def read_offer(self, executor_id: ExecutorId, offer_id: str) -> BatchStream:
        """Read an offer here, for a client that does not reach its executor."""
        ...

    async def fetch(self, inputs: Sequence[Input]) -> Sequence[TaskTable]:
        """Fetch the tables of exchanges; meant for few rows."""
        ...

    async def execute(
        self, executor_id: ExecutorId, query_id: QueryId, statement: Statement, catalog: str
    ) -> BatchStream:
        """Run a whole statement on the executor and stream its rows to the caller."""
        ...

    async def host(self, executor_id: ExecutorId, order: CopyOrder) -> CopyStatus:
        """Let the executor host a copy of a model, and return its state.

        Orders are repeated: an executor ends a copy without an order for a minute.
        """
        ...

    async def dismiss(self, executor_id: ExecutorId, holder: str, key: str) -> None:
        """Inform an executor that this scheduler needs a copy no more. Does not wait for it."""
        ...

    def ask(self, executor_id: ExecutorId, key: str, request: bytes) -> AsyncGenerator[bytes, None]:
        """Call a copy, and yield the parts of its answer; closing the generator ends the call.

        Raises ModelAwayError if there is no copy that is ready, and ModelError if the call failed.
        """
        ...

    async def refuse(self, executor_id: ExecutorId, reason: str) -> None:
        """Report to an executor why this scheduler gives it no work."""
        ...

    def lost(self, executor_id: ExecutorId) -> None:
        """Fail every pending call to an executor that is known to be gone."""
        ...

    async def aclose(self) -> None: ...
