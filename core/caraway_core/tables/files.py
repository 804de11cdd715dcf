"""Files and object stores that tables are read from, as frozen values.

Messages name these classes as classes of `caraway_core.tables`, where the release before has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from caraway_core.releases.protocol_versions import growing

if TYPE_CHECKING:
    # The operator checks places for results without pyarrow, which its image lacks.
    import pyarrow as pa

_SENT_AS = "caraway_core.tables"
FileFormat = Literal["parquet", "csv", "json", "arrow", "avro"]
Compression = Literal["", "gzip", "bz2", "xz", "zstd"]
StoreKind = Literal["s3", "gs", "abfss", "caraway"]


@growing
@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The format of a delimited file."""

    __module__ = _SENT_AS

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

    __module__ = _SENT_AS

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

    __module__ = _SENT_AS

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
    they are those of the files. `is_unmasked` says that fields of NULL structs may hold values, as
    in Arrow files, and in Parquet files that declare them `required`.
    """

    __module__ = _SENT_AS

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
    is_unmasked: bool = False

    @property
    def table_names(self) -> Sequence[str]:
        """The names of the columns of `schema` in the table."""
        names: Sequence[str] = self.names or self.schema.names
        return names
