"""What a version of an accelerated dataset is, as a frozen value."""

from dataclasses import dataclass, field, replace
from datetime import datetime

import pyarrow as pa

from caraway_core.changes import Log
from caraway_core.partitions.keys import PartitionBy
from caraway_core.protocols.results import ChunkInfo
from caraway_core.tables import Keys, ResultPlace, StoredTable


@dataclass(frozen=True, slots=True)
class Superseded:
    """A key of the result store that new statements do not read; some under way may."""

    key: str
    since: datetime


@dataclass(frozen=True, slots=True)
class VersionPart:
    """Chunks that were stored under one key, by one load. It never changes."""

    key: str
    schema: pa.Schema
    chunks: tuple[ChunkInfo, ...]


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """What readers see of a dataset: the rows of its parts, and the changes of its log.

    `sql` is what it was made by, of the source `origin`. `location` is where its chunks lie: a
    version that was made elsewhere is not for us. `position` is how far the source of its changes
    was read, and `requests` what the latest requests were called that brought changes.
    `live_rows` is there where rows and changes were counted that do not show any more.
    """

    number: int
    parts: tuple[VersionPart, ...]
    location: str
    made_at: datetime
    sql: str
    origin: str
    superseded: tuple[Superseded, ...] = ()
    cut: PartitionBy = field(default_factory=PartitionBy)
    log: Log = ()
    position: str = ""
    live_rows: int | None = None
    requests: tuple[str, ...] = ()
    request_pages: int = 0
    """How many pages of earlier requests there are, see `requests`."""
    pending: int = 0
    """So many of the last entries are not read yet: more has to come before they are whole."""

    @property
    def key(self) -> str:
        """The name of the base: all that is there but for the log."""
        return self.parts[-1].key

    @property
    def schema(self) -> pa.Schema:
        return self.parts[-1].schema

    @property
    def chunks(self) -> tuple[ChunkInfo, ...]:
        """All chunks of the base, in the order of the rows."""
        return tuple(
            chunk if part.key == self.key else replace(chunk, key=part.key)
            for part in self.parts
            for chunk in part.chunks
        )

    @property
    def keys(self) -> frozenset[str]:
        """All that it needs in the result store."""
        return frozenset(part.key for part in self.parts) | {each.chunk.key for each in self.log}

    @property
    def read_log(self) -> Log:
        """The entries that statements read."""
        return self.log[: len(self.log) - self.pending]

    @property
    def base_rows(self) -> int:
        return sum(chunk.row_count for part in self.parts for chunk in part.chunks)

    @property
    def rows(self) -> int:
        return self.base_rows if self.live_rows is None else self.live_rows

    @property
    def size_bytes(self) -> int:
        chunks = [chunk for part in self.parts for chunk in part.chunks]
        return sum(each.size_bytes for each in (*chunks, *(entry.chunk for entry in self.log)))

    @property
    def log_rows(self) -> int:
        """How many changes statements read."""
        return sum(entry.chunk.row_count for entry in self.read_log)

    def table(
        self,
        place: ResultPlace,
        keys: Keys | None = None,
        *,
        is_mapped: bool = False,
        replicas: int = 1,
    ) -> StoredTable:
        """Return what queries read; the log goes its own way."""
        return StoredTable(
            self.schema,
            place,
            self.key,
            self.chunks,
            keys,
            self.cut,
            is_mapped=is_mapped,
            replicas=replicas,
        )
