"""Table specifications as frozen values; they are sent to executors, so they hold no clients.

A source turns a dataset into one of these, and a reader of the engine turns it into an SQL table.
A source may define a kind of its own, see `TableSpec`. This module does no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from caraway_core.partitions.keys import PartitionBy
from caraway_core.releases.protocol_versions import growing
from caraway_core.tables import added_files
from caraway_core.tables.files import (
    Compression,
    CsvDialect,
    FileFormat,
    FileScan,
    ResultPlace,
    StoreKind,
    StoreSpec,
)
from caraway_core.tables.keys import Keys, LookupColumns, Twice
from caraway_core.tables.ranges import ColumnRange

if TYPE_CHECKING:
    # The operator checks places for results without pyarrow, which its image lacks.
    import pyarrow as pa

    from caraway_core.protocols.results import ChunkInfo
__all__ = [
    "Compression",
    "CsvDialect",
    "FileFormat",
    "FileScan",
    "FilesTable",
    "Keys",
    "LookupColumns",
    "MemoryTable",
    "RemoteColumn",
    "RemoteSplit",
    "RemoteTable",
    "ResultPlace",
    "StoreKind",
    "StoreSpec",
    "StoredTable",
    "TableSpec",
    "TableSplit",
    "Twice",
    "ViewTable",
]


@dataclass(frozen=True, slots=True)
class TableSplit:
    """A part of a table that its reader can read alone. A kind of table extends this.

    `name` is the same for the same part each time that the table is resolved.
    """

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def size_bytes(self) -> int:
        """The size of its rows, as far as it is known."""
        return 0


class TableSpec:
    """A kind of table. A source defines its own kind as a frozen dataclass that extends this.

    The engine finds the reader of a kind by its type. All other code uses the properties below and
    never checks the type. Specs can be pickled, and equal specs are the same table. Their `repr`
    shows no secrets.
    """

    __slots__ = ()

    schema: pa.Schema

    @property
    def size_bytes(self) -> int:
        """The size of the table at its source; 0: not known."""
        return 0

    @property
    def column_bytes(self) -> Mapping[str, int]:
        """The bytes of each column at its source; empty: not known."""
        return {}

    @property
    def row_count(self) -> int | None:
        """The number of rows, as far as it is known without reading it; may be an estimate."""
        return None

    @property
    def ranges(self) -> tuple[tuple[str, ColumnRange], ...]:
        """The ranges of some columns, as its source says; values may be outside of them."""
        return ()

    @property
    def is_external(self) -> bool:
        """True if its reader gives rows that the engine cannot read itself, and may wait for."""
        return True

    @property
    def is_shareable(self) -> bool:
        """True if several executors may read it for one query."""
        return self.is_divisible

    @property
    def is_divisible(self) -> bool:
        """True if each of several executors can read a share of it."""
        return len(self.splits) > 1

    @property
    def splits(self) -> Sequence[TableSplit]:
        """The parts that its reader can read alone; empty where there is only one."""
        return ()

    @property
    def scans(self) -> tuple[FileScan, ...]:
        """The files that the engine reads it from."""
        return ()

    @property
    def is_parquet(self) -> bool:
        """True if its rows are those of files of Parquet, which others can read."""
        return False

    @property
    def version(self) -> StoredTable | None:
        """The version of an accelerated dataset that it is."""
        return None

    @property
    def query(self) -> str | None:
        """The query that it is a name for."""
        return None

    @property
    def first_rows(self) -> pa.Table | None:
        """The first rows of a table in the memory of one executor."""
        return None

    @property
    def written(self) -> RemoteTable | None:
        """The table that a plug-in writes to; None where the engine does."""
        return None

    @property
    def why_no_insert(self) -> str:
        """Why no rows can be inserted; empty where they can."""
        return ""

    @property
    def why_unchangeable(self) -> str:
        """Why its rows cannot be updated or deleted; empty where they can."""
        return ""

    def moved(self, places: Mapping[str, str]) -> Self:
        """Return the table with other paths of local files."""
        return self


@growing
@dataclass(frozen=True, slots=True)
class FilesTable(TableSpec):
    """A table over files: the union of its scans, columns matched by name, absent ones NULL.

    `writer` is the table for the plug-in that writes to it.
    """

    schema: pa.Schema
    scans: tuple[FileScan, ...] = field()
    row_count: int | None = None
    writer: RemoteTable | None = None
    ranges: tuple[tuple[str, ColumnRange], ...] = ()

    @property
    def written(self) -> RemoteTable | None:
        return self.writer

    @property
    def why_no_insert(self) -> str:
        return "" if self.writer is not None else added_files.why_none(self.scans)

    @property
    def size_bytes(self) -> int:
        return sum(scan.size_bytes for scan in self.scans)

    @property
    def column_bytes(self) -> Mapping[str, int]:
        if not all(scan.column_bytes for scan in self.scans):
            return {}
        counter = Counter[str]()
        for scan in self.scans:
            counter.update(dict(zip(scan.table_names, scan.column_bytes, strict=True)))
        return counter

    @property
    def is_parquet(self) -> bool:
        return all(scan.format == "parquet" for scan in self.scans)

    @property
    def is_external(self) -> bool:
        return False

    @property
    def is_divisible(self) -> bool:
        return len(self.scans) == 1

    @property
    def why_unchangeable(self) -> str:
        if self.writer is not None and not self.writer.why_unchangeable:
            return ""
        return (
            "its rows are in files; replace the files, or keep rows that change in a dataset "
            "`from: cdc:...` with a `primary_key`"
        )

    def moved(self, places: Mapping[str, str]) -> FilesTable:
        scans = (
            replace(scan, paths=tuple(places.get(path, path) for path in scan.paths))
            for scan in self.scans
        )
        return replace(self, scans=tuple(scans))


@dataclass(frozen=True, slots=True)
class MemoryTable(TableSpec):
    """A table that lives in the memory of the executor; `rows` is what it starts with."""

    schema: pa.Schema
    rows: pa.Table

    @property
    def is_external(self) -> bool:
        return False

    @property
    def first_rows(self) -> pa.Table:
        return self.rows


@dataclass(frozen=True, slots=True)
class StoredTable(TableSpec):
    """One version of an accelerated dataset: chunks in a result store, which never change.

    Executors read the chunks that they need and keep them in memory; a query reads all of one
    version, or all of the next. Changes since this version are in its log, see
    `caraway_core.changes`. Where `is_mapped`, chunks are files that stay on disk.
    """

    schema: pa.Schema
    place: ResultPlace
    key: str
    chunks: tuple[ChunkInfo, ...]
    keys: Keys | None = None
    cut: PartitionBy = field(default_factory=PartitionBy)
    is_mapped: bool = False
    replicas: int = 1
    """The number of executors with each partition in memory; the first of them answers."""

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.chunks)

    @property
    def row_count(self) -> int | None:
        """The rows of its chunks; with a key, some of them may stand for one row."""
        return None if self.keys else sum(each.row_count for each in self.chunks)

    @property
    def is_external(self) -> bool:
        return False

    @property
    def is_shareable(self) -> bool:
        return True

    @property
    def is_divisible(self) -> bool:
        return len(self.chunks) > 1

    @property
    def version(self) -> StoredTable:
        return self


@growing
@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A column of a table in a database.

    `is_comparable` says that the database compares, orders and groups its values as the engine
    does. `is_text` says that it is read as text, because the driver has no other form for it.
    `unchecked` names a column of the relation with the same values. The reader checks those in
    place of the database, so that rows are read by it, and conditions and groups are not.
    """

    name: str
    type: pa.DataType
    is_comparable: bool = False
    is_text: bool = False
    unchecked: str = ""


@dataclass(frozen=True, slots=True)
class RemoteSplit(TableSplit):
    """The rows of a remote table whose key is at least `low` and less than `high`."""

    column: str
    low: int | None
    high: int | None
    size_bytes: int = field()

    @property
    def name(self) -> str:
        return f"{self.column} {self.low} {self.high}"


@dataclass(frozen=True, slots=True)
class RemoteTable(TableSpec):
    """A table that a database keeps and that is read there, statement by statement.

    `reader` is a name for `registry.database_reader`; `login` may hold secrets, so it is never
    printed. `splits` are parts that can be read by themselves; none means that there is only one.
    """

    schema: pa.Schema
    reader: str
    relation: tuple[str, ...]
    columns: tuple[RemoteColumn, ...]
    login: Mapping[str, str] = field(repr=False)
    size_bytes: int = 0
    splits: tuple[RemoteSplit, ...] = ()
    row_count: int | None = None

    @property
    def written(self) -> RemoteTable:
        return self

    @property
    def why_unchangeable(self) -> str:
        from caraway_core.loading import registry  # Here: it imports what plug-ins declare.

        declared = registry.database_reader(self.reader)
        is_changeable = declared.is_changeable or declared.is_replacing
        return "" if is_changeable else "its rows are in a database; change them there"

    @property
    def title(self) -> str:
        return f"{self.reader} table '{'.'.join(self.relation)}'"


@dataclass(frozen=True, slots=True)
class ViewTable(TableSpec):
    """A name for a query over other tables, which knows the columns when it is planned."""

    sql: str

    @property
    def schema(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([])

    @property
    def is_external(self) -> bool:
        return False

    @property
    def query(self) -> str:
        return self.sql
