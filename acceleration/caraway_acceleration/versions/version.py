"""Defines the version of an accelerated dataset, as a frozen value."""

from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import Keys, ResultPlace, StoredTable


@dataclass(frozen=True, slots=True)
class Superseded:
    """A chunk store key that new statements do not read; running statements may."""

    key: str
    since: datetime


@dataclass(frozen=True, slots=True)
class VersionPart:
    """The immutable chunks that one load stored under one key."""

    key: str
    schema: pa.Schema
    chunks: tuple[ChunkInfo, ...]


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """The rows of a dataset's parts, and the changes of its log.

    `sql` made it from the source `origin`, which is the fingerprint that the release before reads;
    later ones read `definition`. `location` is where its chunks are stored; versions of other
    locations are unusable here. `position` is how far the source of changes was read.
    `requests` are records of the latest change requests. `live_rows` is the number of visible rows,
    if it differs from the stored rows.
    """

    number: int
    parts: tuple[VersionPart, ...]
    location: str
    made_at: datetime
    sql: str
    origin: str
    superseded: tuple[Superseded, ...] = ()
    partition_by: PartitionBy = field(default_factory=PartitionBy)
    log: Log = ()
    position: str = ""
    live_rows: int | None = None
    requests: tuple[str, ...] = ()
    request_pages: int = 0
    """The number of pages of earlier requests; see `requests`."""
    pending: int = 0
    """The number of the last log entries that are incomplete, and therefore not read yet."""
    definition: str = ""
    primary_key: tuple[str, ...] = ()
    """The key that its rows have, also where the source decides about it."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the definition of its rows, as the release that wrote it has it."""
        return self.definition or self.origin

    @property
    def key(self) -> str:
        """The key of the base: of everything except the log."""
        return self.parts[-1].key

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self.parts[-1].schema

    @property
    def chunks(self) -> tuple[ChunkInfo, ...]:
        """All chunks of the base, in row order."""
        return tuple(
            chunk if part.key == self.key else replace(chunk, key=part.key)
            for part in self.parts
            for chunk in part.chunks
        )

    @property
    def keys(self) -> frozenset[str]:
        """All keys in the chunk store that the version needs."""
        return frozenset(part.key for part in self.parts) | {each.chunk.key for each in self.log}

    @property
    def read_log(self) -> Log:
        """The log entries that statements read."""
        return self.log[: len(self.log) - self.pending]

    @property
    def was_loaded(self) -> bool:
        """True if a followed source has delivered all of its rows at least once."""
        if not self.position:
            return False
        return not self.pending or bool(self.read_log or self.base_rows)

    @property
    def base_rows(self) -> int:
        """The number of rows in the base."""
        return sum(chunk.row_count for part in self.parts for chunk in part.chunks)

    @property
    def rows(self) -> int:
        """The number of visible rows."""
        return self.base_rows if self.live_rows is None else self.live_rows

    @property
    def size_bytes(self) -> int:
        """The stored size in bytes, including the log."""
        chunks = [chunk for part in self.parts for chunk in part.chunks]
        return sum(each.size_bytes for each in (*chunks, *(entry.chunk for entry in self.log)))

    @property
    def log_rows(self) -> int:
        """The number of changes that statements read."""
        return sum(entry.chunk.row_count for entry in self.read_log)

    def table(
        self,
        place: ResultPlace,
        keys: Keys | None = None,
        *,
        is_mapped: bool = False,
        replicas: int = 1,
    ) -> StoredTable:
        """Return the table spec for queries; the log is passed separately."""
        return StoredTable(
            self.schema,
            place,
            self.key,
            self.chunks,
            keys,
            self.partition_by,
            is_mapped=is_mapped,
            replicas=replicas,
        )
