"""Changes to the rows of an accelerated dataset, as they are logged and read.

A log belongs to one version of a dataset, the base. Each entry is a chunk in the result store that
is applied as a whole; rows of it are changes, in order. A log that is read up to some entry names
one state of the dataset for ever.

Columns of an entry: those of the dataset, all of which may be NULL here, and two of its own.

caraway_op      what is done, see `Op`
caraway_offset  where in its source the change stands, or NULL: bytes that are ordered as the
                changes were, after 8 bytes that name the source
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

from caraway_core.protocols.results import ChunkInfo

OP = "caraway_op"
OFFSET = "caraway_offset"
SOURCE_BYTES = 8
OLD_KEY = "caraway_old_"
"""In the rows that a statement changes: the columns of the keys that they had, numbered."""
EXISTS = "caraway_exists"
"""In the rows that a statement changes: whether there is a row with the new key."""


class Op(IntEnum):
    """What a change does.

    For one key the change with the greatest offset counts, if both come from one source;
    otherwise the one that was logged last. So what comes late or twice changes nothing.
    """

    INSERT = 0
    """A row more; of datasets without a primary key."""
    UPSERT = 1
    """The row takes the place of the one with its primary key, if there is one."""
    KEEP = 2
    """The row is taken unless there is one with its primary key."""
    DELETE = 3
    """The row with this primary key goes; other columns are NULL or hold what they held."""
    TRUNCATE = 4
    """All rows before this change go; the columns are NULL."""
    SEEN = 5
    """Nothing is done: a change of this key up to this offset is part of the base."""
    GONE = 6
    """As SEEN, of a key that was deleted."""
    EMPTIED = 7
    """Nothing is done: a TRUNCATE up to this offset is part of the base; the columns are NULL."""


WITHOUT_KEY = frozenset({Op.TRUNCATE, Op.EMPTIED})
"""Changes that are about no one row."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in order, in the columns of `log_schema`; `received` counts what they came from."""

    rows: pa.Table
    received: int


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A chunk of changes, which lies under the key that the chunk names."""

    chunk: ChunkInfo
    made_ms: int = 0
    requests: tuple[str, ...] = ()
    """What the requests were called by who sent them, so that none is applied twice."""


Log = tuple[LogEntry, ...]
Logs = Mapping[str, Log]
"""The logs of datasets, by the key of their base."""


def log_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of the log of a dataset with this schema."""
    nullable = [field.with_nullable(True) for field in schema]
    return pa.schema([*nullable, pa.field(OP, pa.int8(), False), pa.field(OFFSET, pa.binary())])


def joined(parts: Sequence[Changes]) -> Changes:
    """Put the changes of several requests one after another."""
    return Changes(
        pa.concat_tables([each.rows for each in parts]), sum(each.received for each in parts)
    )
