"""Statements and what they read: the values that go to the executors and back."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import pyarrow as pa

from caraway_core.bound_values import ArrowValue
from caraway_core.changes import Logs
from caraway_core.ids import CatalogVersion, PrincipalId, TableName
from caraway_core.index_orders import IndexOrder
from caraway_core.protocols.embedding import NO_EMBEDDING, CatalogEmbedding
from caraway_core.protocols.offers import OfferOrder
from caraway_core.protocols.storing import StoreOrder
from caraway_core.releases.protocol_versions import growing
from caraway_core.statements.definitions import TableDefinition
from caraway_core.tables import TableSpec

Scalar = None | bool | int | float | str | list[Any] | ArrowValue
SystemTable = Callable[[PrincipalId | None], pa.Table]
"""Builds the current content of a `runtime.*` table as a principal may see it; None sees all."""
GIVEN_SCHEMA = "exchange"
"""The schema of rows that come with a statement. It lists none of them."""
INSERT, UPDATE, DELETE = "Insert Into", "Update", "Delete"
"""The engine's names for write operations."""
MERGES = frozenset({"Merge", "MergeInto"})
"""The engine's names for MERGE."""
DEFINITION = "Table Definition"
"""The name of a write that creates or drops a table."""


def all_tables_of(catalog: str) -> TableName:
    """Return what stands for all tables of a source catalog, whichever are described."""
    return TableName(f"{catalog}.*.*")


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
    def from_table(
        cls, rows: pa.Table, target: TableName | None = None, *, replaces: bool = False
    ) -> Self:
        """Give rows a name of their own."""
        name = TableName(f"{GIVEN_SCHEMA}.{secrets.token_hex(16)}")
        return cls(name, rows, target=target, replaces=replaces)

    @classmethod
    def named(cls, name: TableName, rows: pa.Table, schema: pa.Schema | None = None) -> "GivenRows":
        """Give rows a name."""
        return cls(name, rows, schema)

    def __reduce__(self) -> tuple[object, ...]:
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


@growing
@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with its bound values, and what it may read and write.

    `parameters` maps the name of each placeholder (`1`, `2`, ... for positional ones) to a value.
    `may_write` says whether the caller may write at all; `writable` names the tables that accept
    writes, or catalogs (`all_tables_of`). With `store`, rows are stored where they are made, and
    the stream describes the chunks.
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
    With `defines`, its rows become a new table, or a table is dropped; the answer is their count.
    Log lines about the statement include its `trace_id`. What it commits has its `mark`, if it has
    one; see `write_marks`.

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
    trace_id: str = field(default="", repr=False, compare=False)
    defines: TableDefinition | None = None
    mark: str = field(default="", repr=False, compare=False)


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
