"""Table specifications as frozen values; they are sent to executors, so they hold no clients.

A source turns a dataset into one of these, and a reader of the engine turns it into an SQL table.
A source may define a kind of its own, see `caraway_core.table_specs`. This module does no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.versions import growing
from caraway_core.table_specs import TableSpec, TableSplit

if TYPE_CHECKING:
    # The operator checks places for results without pyarrow, which its image lacks.
    import pyarrow as pa

    from caraway_core.protocols.results import ChunkInfo

FileFormat = Literal["parquet", "csv", "json", "arrow", "avro"]
Compression = Literal["", "gzip", "bz2", "xz", "zstd"]
StoreKind = Literal["s3", "gs", "abfss", "caraway"]


@growing
@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The format of a delimited file."""

    has_header: bool = True
    delimiter: str = ","
    quote: str = '"'
    escape: str | None = None
    comment: str | None = None
    terminator: str | None = None
    newlines_in_values: bool = False
    null_regex: str | None = None
    decimal_separator: str = "."


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """An object store and how to sign in; `options` may hold secrets, so it is never printed.

    `bucket` is the bucket or container. `alias` is the host under which the engine knows the
    store: two datasets may read one bucket with different credentials.
    """

    kind: StoreKind
    bucket: str
    alias: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """Where a result store is, in the form that crosses to executors.

    `kind` is a name of `registry.RESULT_STORES`; `path` is an absolute folder, or a prefix in the
    bucket of `store`, whose options may hold secrets.
    """

    kind: str
    path: str
    store: StoreSpec | None = None

    def under(self, name: str) -> ResultPlace:
        """Return the folder of that name at this place."""
        inner = f"{self.path.rstrip('/')}/{name}" if self.path else name
        return replace(self, path=inner)

    @property
    def title(self) -> str:
        """The place as a user would write it."""
        if self.store is None:
            return self.path
        return f"{self.store.kind}://{self.store.bucket}/{self.path}"


@growing
@dataclass(frozen=True, slots=True)
class FileScan:
    """Files of one physical shape that are read as one table.

    `paths` are absolute local paths or `<kind>://<alias>/<key>` URLs. A single entry may be a
    folder (it ends in `/`), which every query lists again; several entries are read as
    they stand. `schema` is what the files hold, without the partition columns, which come from
    `key=value` folders and follow the file columns in the order given. Keys in `paths` are not
    percent-encoded. `partition_values`, where it is given, holds the value of each partition
    column for every file of the scan, because the engine cannot tell them from a list of files.
    `column_bytes` has the part of `size_bytes` that each column of `schema` takes; it is empty if
    the files do not say. `names` are the names of these columns in the table; it is empty where
    they are those of the files.
    """

    format: FileFormat
    paths: tuple[str, ...]
    schema: pa.Schema
    extension: str
    compression: Compression = ""
    csv: CsvDialect | None = None
    json_array: bool = False
    partition_columns: tuple[pa.Field, ...] = ()
    partition_values: tuple[str | None, ...] | None = None
    store: StoreSpec | None = None
    size_bytes: int = 0
    file_count: int = 0
    column_bytes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def table_names(self) -> Sequence[str]:
        """The names of the columns of `schema` in the table."""
        names: Sequence[str] = self.names or self.schema.names
        return names


@dataclass(frozen=True, slots=True)
class FilesTable(TableSpec):
    """A table over files: the union of its scans, columns matched by name, absent ones NULL."""

    schema: pa.Schema
    scans: tuple[FileScan, ...] = field()
    row_count: int | None = None

    @property
    def size_bytes(self) -> int:
        return sum(scan.size_bytes for scan in self.scans)

    @property
    def column_bytes(self) -> Mapping[str, int]:
        if not all(scan.column_bytes for scan in self.scans):
            return {}
        found = Counter[str]()
        for scan in self.scans:
            found.update(dict(zip(scan.table_names, scan.column_bytes, strict=True)))
        return found

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


Twice = Literal["refuse", "same", "first", "last"]


@dataclass(frozen=True, slots=True)
class LookupColumns:
    """Columns that are looked up together."""

    columns: tuple[str, ...]
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class Keys:
    """How the rows of a dataset are told apart, and by what they are found.

    `primary` may be empty. `twice` says what becomes of rows that are loaded with one primary key:
    they are refused, or refused unless they are the same throughout, or the first or last counts.
    """

    primary: tuple[str, ...] = ()
    twice: Twice = "refuse"
    indexes: tuple[LookupColumns, ...] = ()


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


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A column of a table in a database.

    `is_comparable` says that the database compares, orders and groups its values as the engine
    does. `is_text` says that it is read as text, because the driver has no other form for it.
    """

    name: str
    type: pa.DataType
    is_comparable: bool = False
    is_text: bool = False


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

    `reader` is a name of `registry.REMOTE_READERS`; `login` may hold secrets, so it is never
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
