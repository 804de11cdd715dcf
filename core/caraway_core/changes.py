"""Row changes of an accelerated dataset: the schema of its log, and the log's entries.

A log belongs to one version of a dataset, its base. Each entry is a chunk in the result store, is
applied as a whole, and holds changes in order. A base and a prefix of its log identify one
immutable state of the dataset.

An entry has the columns of the dataset, all nullable, and two more:

- caraway_op: the operation, see `Op`.
- caraway_offset: the position of the change in its source, or NULL. The first 8 bytes identify the
  source; the rest sorts in the order of the changes.
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
"""Prefix of the numbered columns that hold the old keys of the rows that a statement changes."""
EXISTS = "caraway_exists"
"""Column of the rows that a statement changes: whether a row with the new key exists."""


class Op(IntEnum):
    """The operation of a change.

    For one key, the change with the greatest offset wins if both come from one source. Otherwise
    the change that was logged last wins. Late or repeated changes therefore have no effect.
    """

    INSERT = 0
    """Inserts a row; for datasets without a primary key."""
    UPSERT = 1
    """Inserts the row, or replaces the row with its primary key."""
    KEEP = 2
    """Inserts the row unless a row with its primary key exists."""
    DELETE = 3
    """Deletes the row with this primary key; other columns are NULL or hold the old values."""
    TRUNCATE = 4
    """Deletes all rows before this change; the columns are NULL."""
    SEEN = 5
    """No effect: the base already contains the changes of this key up to this offset."""
    GONE = 6
    """Like SEEN, for a key that was deleted."""
    EMPTIED = 7
    """No effect: the base already contains a TRUNCATE up to this offset; the columns are NULL."""


WITHOUT_KEY = frozenset({Op.TRUNCATE, Op.EMPTIED})
"""Changes that do not concern a single row."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes in order, in the columns of `log_schema`; `received` counts the changes received.

    `entries` hold exactly these rows, if they were stored before they were whole.
    """

    rows: pa.Table
    received: int
    entries: "Log" = ()


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A chunk of changes, stored under the key that the chunk names."""

    chunk: ChunkInfo
    made_ms: int = 0
    requests: tuple[str, ...] = ()
    """Request ids given by the senders, so that no request is applied twice."""


Log = tuple[LogEntry, ...]
Logs = Mapping[str, Log]
"""The logs of datasets, by the key of their base."""


def log_schema(schema: pa.Schema) -> pa.Schema:
    """Return the log schema of a dataset with this schema."""
    nullable = [field.with_nullable(True) for field in schema]
    return pa.schema([*nullable, pa.field(OP, pa.int8(), False), pa.field(OFFSET, pa.binary())])


def without_log(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a dataset whose changes have this schema."""
    return pa.schema([field for field in schema if field.name not in (OP, OFFSET)])


def joined(parts: Sequence[Changes]) -> Changes:
    """Concatenate the changes of several requests."""
    return Changes(
        pa.concat_tables([each.rows for each in parts]), sum(each.received for each in parts)
    )
